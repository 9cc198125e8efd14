#!/usr/bin/env python3
"""Prints the tables of workflows.md from the files that `shed-sim sweep` wrote."""

import json
import statistics
import sys
from collections import defaultdict

# Student's t for a two-sided interval of 95 %, by degrees of freedom.
T95 = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
RULES = ["run", "tail", "flexible", "graph"]


def interval(values):
    """The mean and half of its interval of 95 %."""
    if len(values) < 2:
        return statistics.mean(values), float("nan")
    t = T95[min(len(values), len(T95)) - 1]
    return statistics.mean(values), t * statistics.stdev(values) / len(values) ** 0.5


def main():
    cells = defaultdict(dict)
    for path in sys.argv[1:]:
        for line in open(path):
            row = json.loads(line)
            trace = row["trace"].rsplit("/", 1)[-1].split(".")[0]
            key = trace, row["policy"].split("{")[0], row["load"]
            cells[key][row["stage_deadlines"], row["seed"]] = row
    print("| trace | policy | load | seeds | run | tail − run | flexible − run | graph − run | tail − graph | clones per run met: run, tail, flexible, graph |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (trace, policy, load), rows in sorted(cells.items()):
        seeds = [seed for rule, seed in rows if rule == "run"]
        seeds = sorted(s for s in seeds if all((rule, s) in rows for rule in RULES))
        if not seeds:
            continue

        def met(rule):
            return [100 * rows[rule, seed]["pocd"] for seed in seeds]

        def difference(rule, base):
            mean, half = interval([a - b for a, b in zip(met(rule), met(base))])
            return f"{mean:+.1f} ± {half:.1f}"

        def clones(rule):
            of_rule = [rows[rule, seed] for seed in seeds]
            runs_met = sum(row["jobs_met"] for row in of_rule)
            return f"{sum(row['clones'] for row in of_rule) / max(runs_met, 1):.2f}"

        columns = [
            trace, policy, f"{load}", f"{len(seeds)}", f"{interval(met('run'))[0]:.1f}",
            difference("tail", "run"), difference("flexible", "run"),
            difference("graph", "run"), difference("tail", "graph"),
            ", ".join(clones(rule) for rule in RULES),
        ]
        print("| " + " | ".join(columns) + " |")


main()
