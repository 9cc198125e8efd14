#!/usr/bin/env bash
# Runs the DAG of docs/how-to/airflow.md with a real Airflow: its KubernetesJobOperator creates a Job with a deadline,
# and the task ends with the Job, which shed runs.
#
#   e2e/airflow.sh            on a cluster with shed and real nodes, with the current kubeconfig: at the end of the task
#                             Airflow reads the logs of its pods
#   e2e/airflow.sh --parse    without a cluster: installs Airflow, parses the DAG and prints the Job that it creates
#
# The first run installs Airflow from PyPI (e2e/airflow/requirements.txt) into the user's cache, about 600 MB.
#
# Environment:
#   SHED_PYTHON=python3      a Python from 3.11 to 3.13 with the module venv
#   SHED_E2E_BUSYBOX=IMAGE   an image with a shell on the nodes, instead of the DAG's (default localhost/busybox:test)
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

case ${1-} in
"" | --parse) ;;
*)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
say() { echo "airflow: $*" >&2; }

work=$(mktemp -d "${TMPDIR:-/tmp}/shed-airflow.XXXXXX")
made=no
finish() {
    status=$?
    trap - EXIT INT TERM
    set +e
    if [ "$status" != 0 ]; then
        [ ! -e "$work/airflow.log" ] || tail -n 60 "$work/airflow.log" >&2
    fi
    if [ "$made" = yes ]; then kubectl delete namespace reports --wait=false >&2; fi
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

. e2e/airflow/setup.sh "$work"
export SHED_PAGE=$PWD/docs/how-to/airflow.md SHED_E2E_BUSYBOX=${SHED_E2E_BUSYBOX:-localhost/busybox:test}
cp e2e/airflow/deadline.py "$work/dags/"

# The operator reads a kubeconfig while it builds the Job, and connects to no cluster.
cat >"$work/no-cluster" <<'KUBECONFIG'
{apiVersion: v1, kind: Config, current-context: none,
 contexts: [{name: none, context: {cluster: none, user: none}}],
 clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: none, user: {}}]}
KUBECONFIG
KUBECONFIG=$work/no-cluster python e2e/airflow/print_job.py "$work/dags" "$work/job.yaml" >"$work/airflow.log" 2>&1
for line in 'shed.dev/deadline: 4h' 'managedBy: shed.dev/deadline-controller' 'completions: 20' 'parallelism: 20'; do
    grep -q "$line" "$work/job.yaml" || {
        cat "$work/job.yaml" >&2
        say "the Job lacks \`$line\`"
        exit 1
    }
done
if [ "${1-}" = --parse ]; then
    cat "$work/job.yaml"
    exit 0
fi

kubectl create namespace reports >&2
made=yes

python -m airflow db migrate >"$work/airflow.log" 2>&1
say 'running the DAG'
python -m airflow dags test deadline >>"$work/airflow.log" 2>&1

# The task's success is Airflow's word; the Job is Kubernetes'.
ended=$(kubectl -n reports get jobs -o jsonpath='{range .items[*]}{.status.succeeded}{" "}{.spec.managedBy}{" "}{.status.conditions[?(@.status=="True")].type}{"\n"}{end}')
say "succeeded, controller, conditions of the Job: $ended"
grep -q '^20 shed.dev/deadline-controller .*Complete' <<<"$ended"
python - <<'PYTHON'
import os
import sqlite3

states = sqlite3.connect(f"{os.environ['AIRFLOW_HOME']}/airflow.db").execute("select task_id, state from task_instance").fetchall()
print("airflow: tasks", states)
if states != [("report", "success")]:
    raise SystemExit("airflow: the task did not succeed")
PYTHON
