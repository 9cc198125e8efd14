#!/usr/bin/env python3
"""Tests the commands of the runbooks on stored objects, without a cluster.

  e2e/runbooks-test.py

Each `kubectl get … -o json | jq …` runs with a kubectl that answers with the objects below, and must print the jobs of
EXPECTED. Each `helm upgrade` is rendered by `helm template` with a price of clones, which some policies refuse.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNBOOKS = ROOT / "docs/runbooks.md"
CONDITIONS = ROOT / "docs/reference/conditions.md"
# Values that a cluster may have when an alert fires.
BASE_VALUES = ROOT / "charts/shed/ci/price-values.yaml"
FENCE = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)

# Jobs by kind and name, with their conditions: type, status, reason.
JOBS = {
    "DeadlineJob": {
        "fine": [("DeadlineFeasible", "True", "TargetReachable"), ("DeadlineAtRisk", "False", "OnTrack")],
        "infeasible": [("DeadlineFeasible", "False", "DeadlineInfeasible")],
        "unknown": [("DeadlineFeasible", "Unknown", "DurationsUnknown")],
        "late": [("DeadlineMissed", "True", "DeadlinePassed"), ("DeadlineAtRisk", "False", "JobEnded")],
        "moved": [("DeadlineMissed", "False", "DeadlineMoved")],
        "stopped": [("DeadlineMissed", "True", "DeadlinePassed"), ("FailureTarget", "True", "DeadlineMissed"),
                    ("Failed", "True", "DeadlineMissed")],
        "broken": [("Failed", "True", "BackoffLimitExceeded")],
        "risky": [("DeadlineAtRisk", "True", "TasksStraggling")],
        "waits": [("TasksPending", "True", "InsufficientCapacity")],
        "blocked": [("AttemptsBlocked", "True", "PodForbidden")],
        "starts": [("AttemptsBlocked", "False", "AttemptsStarting")],
        "lost": [("TerminationUnconfirmed", "True", "NodeUnreachable")],
        "typo": [("Failed", "True", "InvalidSpec")],
        "crashes": [("Quarantined", "True", "ReconcilePanicked")],
        "silent": [("ProgressUnreachable", "True", "NoResponse")],
        "new": None,
    },
    "Job": {
        "refused": [("AdoptionRefused", "True", "InvalidAnnotation")],
        "adopted": [("AdoptionRefused", "False", "Adopted")],
        "foreign": None,
    },
}

# The jobs that the jq commands of each runbook print, in order.
EXPECTED = {
    "ShedDeadlineBudgetBurnsFast": [{"infeasible", "late", "stopped", "broken", "risky", "waits", "blocked", "lost", "typo"}],
    "ShedJobAtRisk": [{"DeadlineFeasible"}],
    "ShedJobsNotRun": [{"blocked", "lost", "typo", "refused"}, {"crashes"}],
    "ShedProgressPollsFail": [{"silent"}],
}
# The job that stands for <name>, and whose conditions a command prints.
NAMED = "infeasible"

KUBECTL = """#!/usr/bin/env python3
import json, sys
jobs = json.load(open({objects!r}))
kinds, *rest = sys.argv[2:]
names = {{"deadlinejob": "DeadlineJob", "deadlinejobs": "DeadlineJob", "jobs": "Job"}}
kinds = {{names[kind] for kind in kinds.split(",")}}
found = [job for job in jobs if job["kind"] in kinds]
if rest and not rest[0].startswith("-"):
    print(json.dumps(next(job for job in found if job["metadata"]["name"] == rest[0])))
else:
    print(json.dumps({{"kind": "List", "items": found}}))
"""


def objects():
    """The stored jobs. Every condition is one that shed writes."""
    rows = CONDITIONS.read_text()
    for kind, jobs in JOBS.items():
        for name, conditions in jobs.items():
            job = {"kind": kind, "metadata": {"namespace": "team", "name": name}}
            if conditions is not None:
                job["status"] = {"conditions": [condition(rows, *words) for words in conditions]}
            yield job


def condition(rows, type_, status, reason):
    row = rf"^\| [^|]*`{type_}`[^|]* \| {status} \| `{reason}` \|"
    assert re.search(row, rows, re.MULTILINE), f"{CONDITIONS.name} has no condition {type_}={status} {reason}"
    return {"type": type_, "status": status, "reason": reason, "message": "a message"}


def runbooks():
    """Each alert's name with its text."""
    _, *parts = re.split(r"^## (Shed\w+)$", RUNBOOKS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2]))


def commands(text):
    for indent, script in FENCE.findall(text):
        yield "\n".join(line.removeprefix(indent) for line in script.splitlines())


def printed(script, folder):
    """The names in what a command prints: of jobs, or of the conditions of one job."""
    filled = script.replace("<name>", NAMED).replace("<namespace>", "team")
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", filled], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = {name for jobs in JOBS.values() for name in jobs}
    cells = [line.split("\t") for line in done.stdout.splitlines()]
    return {next((cell for cell in row if cell in names), row[0]) for row in cells}


def jq_faults(alert, text, folder):
    expected = EXPECTED.get(alert, [])
    found = [printed(script, folder) for script in commands(text) if "| jq " in script]
    if found != expected:
        yield f"{alert}: jq prints {found}, not {expected}"


def helm_faults(alert, text, helm):
    for script in commands(text):
        if not script.startswith("helm upgrade"):
            continue
        words = shlex.split(script.replace("\\\n", " "))
        assert words[:4] == ["helm", "upgrade", "shed", "charts/shed"], words
        flags = [word for word in words[4:] if word != "--reset-then-reuse-values"]
        done = subprocess.run([helm, "template", "shed", "charts/shed", "--kube-version", "1.34.0", "--values",
                               str(BASE_VALUES), *flags], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            yield f"{alert}: {' '.join(words)}: {done.stderr.strip()}"


def main():
    tool = subprocess.run("command -v helm || e2e/cluster/cluster tool helm | tail -n 1", shell=True, cwd=ROOT,
                          capture_output=True, text=True, check=True)
    found = runbooks()
    unknown = EXPECTED.keys() - found.keys()
    faults = [f"no runbook {name}" for name in sorted(unknown)]
    with tempfile.TemporaryDirectory() as folder:
        stored = pathlib.Path(folder) / "objects.json"
        stored.write_text(json.dumps(list(objects())))
        kubectl = pathlib.Path(folder) / "kubectl"
        kubectl.write_text(KUBECTL.format(objects=str(stored)))
        kubectl.chmod(0o755)
        for alert, text in found.items():
            faults += [*jq_faults(alert, text, folder), *helm_faults(alert, text, tool.stdout.strip())]
    for fault in faults:
        print(f"runbooks: {fault}", file=sys.stderr)
    print(f"runbooks: {len(found)} runbooks, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
