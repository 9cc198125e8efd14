#!/usr/bin/env bash
# Measures what a clone costs the control plane, on a cluster of its own with fake nodes.
#
#   e2e/clone-cost.sh [ROUNDS]    3 rounds take 4 minutes
#
# Each round runs a job of 100 tasks twice: without clones, and with a clone of almost every task (`dolly`). The
# difference, divided by the number of clones, is printed for each round: CPU of the apiserver in ms, writes of all
# clients to pods, jobs and events, writes of etcd, and bytes written to etcd.
set -euo pipefail

rounds=${1:-3}
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/cluster/cluster
cd "$here/.."
cargo build --locked --quiet --package shed --bin shed
shed=${CARGO_TARGET_DIR:-target}/debug/shed
address=127.0.0.1:18190

SHED_CLUSTER_STATE=$(mktemp -d "${TMPDIR:-/tmp}/shed-clone-cost.XXXXXX")
export SHED_CLUSTER_STATE
operator=
finish() {
    status=$?
    trap - EXIT INT TERM
    [ -z "$operator" ] || kill -KILL "$operator" 2>/dev/null || true
    "$cluster" down >&2 || true
    rm -rf -- "$SHED_CLUSTER_STATE"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$cluster" up --nodes kwok --count 3 --max-pods 110 >&2
eval "$("$cluster" env)"
kubectl apply --server-side -f crds/deadlinejobs.yaml >&2
kubectl wait --for condition=Established --timeout 60s crd/deadlinejobs.shed.dev >&2
apiserver=$(pgrep -f "kube-apiserver .*$SHED_CLUSTER_STATE/" | head -n 1)
etcd=$(tr '\0' '\n' <"/proc/$apiserver/cmdline" | sed -n 's/^--etcd-servers=//p')

# CPU in ms, writes of clients, writes of etcd, bytes of etcd.
sample() {
    local hertz cpu writes stored
    hertz=$(getconf CLK_TCK)
    cpu=$(awk -v hertz="$hertz" '{print ($14 + $15) * 1000 / hertz}' "/proc/$apiserver/stat")
    writes=$(kubectl get --raw /metrics | awk '/^apiserver_request_total/ && /verb="(POST|PUT|PATCH|DELETE)"/ &&
        /resource="(pods|deadlinejobs|events)"/ {n += $NF} END {print n + 0}')
    stored=$(curl --silent --noproxy '*' "$etcd/metrics" | awk '/^etcd_mvcc_put_total/ {puts = $2}
        /^etcd_debugging_mvcc_total_put_size_in_bytes/ {bytes = $2} END {printf "%d %d", puts, bytes}')
    echo "$cpu $writes $stored"
}

job() {
    cat <<'YAML'
apiVersion: shed.dev/v1alpha1
kind: DeadlineJob
metadata: {name: measured, namespace: default}
spec:
  deadline: {within: 20m}
  completions: 100
  parallelism: 100
  idempotency: Safe
  template:
    metadata: {annotations: {shed.dev/kwok-run-ms: "12000"}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: task, image: none, resources: {requests: {cpu: 10m}}}]
YAML
}

# The growth of each figure while the job runs under a policy, and the number of clones.
run() {
    local before after clones
    HOSTNAME=measure "$shed" operator --agent-image none --leader-elect=false --http-address "$address" \
        --policy "$1" >/dev/null 2>&1 &
    operator=$!
    until curl --silent --fail --noproxy '*' "$address/readyz" | grep -q leading; do sleep 0.5; done
    sleep 3
    before=$(sample)
    job | kubectl apply --server-side -f - >/dev/null
    kubectl wait --for condition=Complete --timeout 120s deadlinejob/measured >/dev/null
    # Until every pod is counted.
    sleep 6
    after=$(sample)
    clones=$(kubectl get deadlinejob measured -o jsonpath='{.status.attempts.clones}')
    kubectl delete deadlinejob measured >/dev/null
    sleep 3
    kill -KILL "$operator"
    wait "$operator" 2>/dev/null || true
    operator=
    paste -d ' ' <(tr ' ' '\n' <<<"$before") <(tr ' ' '\n' <<<"$after") | awk '{printf "%d ", $2 - $1}'
    echo "$clones"
}

echo "clones  apiserver CPU ms  writes  etcd writes  etcd bytes (each per clone)"
for _ in $(seq "$rounds"); do
    without=$(run hadoop-ns)
    with=$(run 'dolly{p=0.01,epsilon=0.05,budget=1,utilisation=1}')
    echo "$without $with" | awk '{n = $10; printf "%6d %17.1f %7.1f %12.1f %11.0f\n", n,
        ($6 - $1) / n, ($7 - $2) / n, ($8 - $3) / n, ($9 - $4) / n}'
done
