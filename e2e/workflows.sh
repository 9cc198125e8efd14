#!/usr/bin/env bash
# Runs a workflow of three stages, each a Job of its own, with a slow node in the second stage: with shed, where the run
# must be in time, and without, where it must be late.
#
#   e2e/workflows.sh [script|airflow]…   on a cluster with shed and real nodes, with the current kubeconfig
#
# `script` is that of docs/how-to/workflow-from-a-script.md, with the manifests there; `airflow` is the DAG of
# docs/how-to/workflow-from-airflow.md on a real Airflow. Both have the deadline SHED_WITHIN=120s.
#
# Environment: SHED_E2E_BUSYBOX=localhost/busybox:test   an image with a shell on the nodes
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "workflows: $*" >&2; }

cluster=e2e/cluster/cluster page=docs/how-to/workflow-from-a-script.md
export SHED_WITHIN=${SHED_WITHIN:-120s} SHED_E2E_BUSYBOX=${SHED_E2E_BUSYBOX:-localhost/busybox:test}
# The DAG names it.
namespace=reports
slow=$(kubectl get nodes -o jsonpath='{.items[-1:].metadata.name}')
work=$(mktemp -d "${TMPDIR:-/tmp}/shed-workflows.XXXXXX")
slowing=''
finish() {
    status=$?
    trap - EXIT INT TERM
    set +e
    [ -z "$slowing" ] || kill "$slowing" 2>/dev/null
    "$cluster" slow "$slow" 1 >&2
    if [ "$status" != 0 ] && [ -s "$work/log" ]; then tail -n 40 "$work/log" >&2; fi
    kubectl delete namespace "$namespace" --ignore-not-found --wait=false >&2
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

kubectl config view --raw --minify --flatten >"$work/kubeconfig"
export KUBECONFIG=$work/kubeconfig
kubectl config set-context --current --namespace "$namespace" >/dev/null

# block LANGUAGE: the first code block of the page in that language.
block() { sed -n "/^\`\`\`$1\( .*\)\?\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$page"; }

# The manifests of the page. The first and the last stage do nothing that a slow node could delay.
make_manifests() {
    block yaml | sed "s|busybox:1.37|$SHED_E2E_BUSYBOX|; s|workflow-deadline: .*|workflow-deadline: $SHED_WITHIN|" >"$work/transform.yaml"
    if [ "$1" = plain ]; then sed -i '/managedBy:/d' "$work/transform.yaml"; fi
    python3 - "$work" <<'PYTHON'
import re
import sys

work = sys.argv[1]
with open(f"{work}/transform.yaml", encoding="utf-8") as file:
    transform = file.read()
for stage in ["extract", "load"]:
    text = transform.replace("run-name-transform", f"run-name-{stage}").replace("etl-transform", f"etl-{stage}")
    last = '    shed.dev/workflow-last: "true"\n' if stage == "load" else ""
    text = re.sub(r"    shed.dev/idempotency: .*\n    shed.dev/progress: .*\n    shed.dev/resume: .*\n", last, text)
    text = re.sub(r"(completions|parallelism): 6", r"\1: 1", text)
    text = re.sub(r"command:\n.*?          resources", "command: [sleep, '1']\n          resources", text, flags=re.DOTALL)
    with open(f"{work}/{stage}.yaml", "w", encoding="utf-8") as file:
        file.write(text)
# The script of the page's stage, for the DAG.
lines = transform[transform.index("- |\n") + 4 : transform.index("          resources")]
with open(f"{work}/work.sh", "w", encoding="utf-8") as file:
    file.write(lines)
PYTHON
}

run_script() {
    block sh >"$work/run.sh"
    (cd "$work" && sh run.sh) >>"$work/log" 2>&1
}

run_airflow() {
    if [ "$1" = shed ]; then export SHED_MANAGED=yes; else unset SHED_MANAGED; fi
    python -m airflow dags test etl >>"$work/log" 2>&1
}

# slow_second_stage: from the beginning of the second stage to its end.
slow_second_stage() {
    until kubectl get jobs -o name 2>/dev/null | grep -q -- -transform; do sleep 1; done
    "$cluster" slow "$slow" 0.1
    until kubectl get jobs -o name 2>/dev/null | grep -q -- -load; do sleep 1; done
    "$cluster" slow "$slow" 1
}

# seconds_of_run: from the creation of the first Job to the end of the last.
seconds_of_run() {
    kubectl get jobs -o json | python3 -c '
import datetime, json, sys
jobs = json.load(sys.stdin)["items"]
at = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
if len(jobs) != 3 or not all("completionTime" in job["status"] for job in jobs):
    sys.exit("workflows: not three complete Jobs: %s" % [(job["metadata"]["name"], job["status"]) for job in jobs])
first = min(at(job["metadata"]["creationTimestamp"]) for job in jobs)
last = max(at(job["status"]["completionTime"]) for job in jobs)
print(round((last - first).total_seconds()))'
}

# arm TOOL shed|plain: prints the seconds of a run.
arm() {
    kubectl create namespace "$namespace" >&2
    make_manifests "$2"
    slow_second_stage >/dev/null 2>&1 &
    slowing=$!
    "run_$1" "$2"
    wait "$slowing"
    slowing=''
    seconds_of_run >"$work/seconds"
    if [ "$2" = shed ]; then
        # Its deadline counts from the start of the DAG run, before the first Job.
        kubectl get jobs -o jsonpath='{range .items[*]}{.status.conditions[?(@.status=="True")].type}{"\n"}{end}' >"$work/conditions"
        if grep -q DeadlineMissed "$work/conditions"; then say "a stage missed the deadline of the run" && exit 1; fi
        kubectl get deadlinejobs -o jsonpath='{range .items[*]}{.metadata.name}: {.status.attempts.clones} clones, {.status.attempts.cloneWins} won; PoCD of the run {.status.workflow.pocd}{"\n"}{end}' >&2
        kubectl get events -o jsonpath='{range .items[?(@.type=="Warning")]}{.reason}: {.note}{.message}{"\n"}{end}' | sort | uniq -c >&2
    fi
    kubectl delete namespace "$namespace" >&2
}

within=${SHED_WITHIN%s}
[ $# -gt 0 ] || set -- script airflow
for tool; do
    case $tool in
    script) ;;
    airflow)
        . e2e/airflow/setup.sh "$work"
        export SHED_PAGE=$PWD/docs/how-to/workflow-from-airflow.md SHED_WORK=$work/work.sh
        cp e2e/airflow/etl.py "$work/dags/"
        python -m airflow db migrate >"$work/log" 2>&1
        ;;
    *)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 2
        ;;
    esac
    say "$tool, with shed"
    arm "$tool" shed
    with=$(cat "$work/seconds")
    say "$tool, without shed"
    arm "$tool" plain
    without=$(cat "$work/seconds")
    echo "$tool: $with s with shed, $without s without; the deadline is $within s after the first Job"
    if [ "$with" -gt "$within" ]; then say "$tool: late with shed" && exit 1; fi
    if [ "$without" -le "$within" ]; then say "$tool: in time without shed, so this run shows nothing" && exit 1; fi
done
