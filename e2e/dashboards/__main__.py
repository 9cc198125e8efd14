"""Grafana dashboards as code.

  python3 e2e/dashboards write FOLDER      fleet.json, job.json and operator.json, to FOLDER
  python3 e2e/dashboards check FILE...     the faults of dashboards, one per line
  python3 e2e/dashboards compare FILE...   those that the chart's manifest on standard input has in another form
  python3 e2e/dashboards rules FILE...     the queries as a rule file (JSON is YAML), for promtool check rules
  python3 e2e/dashboards samples FILE...   the queries with series of each metric, for promtool test rules

e2e/generate.sh and e2e/chart-test.sh call this, in the repository's folder.
"""

import json
import pathlib
import sys

import check
import fleet
import job
import replicas

BOARDS = {"fleet": fleet, "job": job, "operator": replicas}


def print_lines(lines):
    for line in lines:
        print(line)


match sys.argv[1:]:
    case ["write", folder]:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        for name, module in BOARDS.items():
            text = json.dumps(module.dashboard().json(), indent=2, sort_keys=True)
            (pathlib.Path(folder) / f"{name}.json").write_text(text + "\n")
    case ["check", _, *_]:
        print_lines(check.faults(sys.argv[2:]))
    case ["compare", _, *_]:
        print_lines(check.differing(sys.argv[2:], sys.stdin.read()))
    case ["rules", _, *_]:
        print(json.dumps(check.rules(sys.argv[2:])))
    case ["samples", _, *_]:
        print(json.dumps(check.samples(sys.argv[2:])))
    case _:
        sys.exit(__doc__)
