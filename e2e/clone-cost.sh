#!/usr/bin/env bash
# Measures what a clone costs the control plane, on a cluster of its own with fake nodes.
#
#   e2e/clone-cost.sh [ROUNDS]    3 rounds take 4 minutes
#
# Each round runs a job of 100 tasks twice: without clones, and with a clone of almost every task (`dolly`). The
# difference, divided by the number of clones, is printed for each round: CPU of the apiserver in ms, writes of all
# clients to pods, jobs and events, writes of etcd, and bytes written to etcd.
set -euo pipefail
shopt -s inherit_errexit

rounds=${1:-3}
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/cluster/cluster
cd "$here/.."
cargo build --locked --quiet --package shed --bin shed
shed=${CARGO_TARGET_DIR:-target}/debug/shed
address=127.0.0.1:18190

# shellcheck source=e2e/own-cluster.sh
. "$here/own-cluster.sh"

"$cluster" up --nodes kwok --count 3 --max-pods 110 >&2
eval "$("$cluster" env)"
kubectl apply --server-side -f crds/deadlinejobs.yaml >&2
kubectl wait --for condition=Established --timeout 60s crd/deadlinejobs.shed.dev >&2
apiserver=$(pgrep --oldest -f "kube-apiserver .*$SHED_CLUSTER_STATE/")
etcd=$(tr '\0' '\n' <"/proc/$apiserver/cmdline" | sed -n 's/^--etcd-servers=//p')

# `within SECONDS WHAT COMMAND…`: the command succeeds in this time, or the script ends with a message.
within() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "clone-cost: $what: not in time" >&2
            exit 1
        fi
        sleep 0.5
    done
}
client_writes() {
    kubectl get --raw /metrics | awk '/^apiserver_request_total/ && /verb="(POST|PUT|PATCH|DELETE)"/ &&
        /resource="(pods|deadlinejobs|events)"/ {n += $NF} END {print n + 0}'
}
leads() { grep -q leading <<<"$(curl --silent --fail --noproxy '*' "$address/readyz")"; }
# Whether nothing was written since the last call.
is_quiet() {
    local last=$seen
    seen=$(client_writes)
    [ "$seen" = "$last" ]
}
# Whether each pod is counted, so that it has no finalizer, and no pod is still being deleted.
all_counted() {
    local open
    open=$(kubectl get pods --output jsonpath='{.items[*].metadata.finalizers}{.items[*].metadata.deletionTimestamp}') &&
        [ -z "$open" ]
}

# CPU in ms, writes of clients, writes of etcd, bytes of etcd.
sample() {
    local hertz cpu writes stored
    hertz=$(getconf CLK_TCK)
    cpu=$(awk -v hertz="$hertz" '{print ($14 + $15) * 1000 / hertz}' "/proc/$apiserver/stat")
    writes=$(client_writes)
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

# The growth of each figure while the job runs under a policy, and the number of clones. Runs in a subshell.
run() {
    local before after clones seen=
    HOSTNAME=measure "$shed" operator --agent-image none --leader-elect=false --http-address "$address" \
        --policy "$1" >/dev/null 2>&1 &
    operator=$!
    trap 'kill -KILL "$operator" 2>/dev/null || true' EXIT
    within 60 "the operator leads" leads
    within 60 "writes of its start end" is_quiet
    before=$(sample)
    job | kubectl apply --server-side -f - >/dev/null
    kubectl wait --for condition=Complete --timeout 120s deadlinejob/measured >/dev/null
    within 60 "every pod is counted" all_counted
    after=$(sample)
    clones=$(kubectl get deadlinejob measured -o jsonpath='{.status.attempts.clones}')
    kubectl delete deadlinejob measured >/dev/null
    kubectl wait --for delete pod --all --timeout 60s >/dev/null
    kill -KILL "$operator"
    wait "$operator" 2>/dev/null || true
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
