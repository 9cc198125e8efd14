#!/usr/bin/env bash
# Asks shed about a rescued straggler with `kubectl shed`, on a cluster with shed: from the job's own objects, and from the
# leader (`askAddress`) over a port-forward. Then e2e/kubectl-shed-tmux.sh asks in terminals.
#
#   e2e/kubectl-shed.sh    with the current kubeconfig
#
# SHED_E2E_BUSYBOX is an image with a shell (default localhost/busybox:test).
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --quiet --package kubectl-shed
export KUBECTL_SHED=${CARGO_TARGET_DIR:-target}/debug/kubectl-shed
namespace=kubectl-shed
trap 'kubectl delete namespace "$namespace" --ignore-not-found >&2' EXIT
kubectl create namespace "$namespace" >&2
sed "s|localhost/busybox:test|${SHED_E2E_BUSYBOX:-localhost/busybox:test}|" e2e/kubectl-shed.yaml |
  kubectl create --namespace "$namespace" --filename - >&2

# says WORDS VERB…: the answer has the words.
says() {
  local words=$1 answer
  shift
  answer=$("$KUBECTL_SHED" "$@")
  printf '== kubectl shed %s\n%s\n' "$*" "$answer"
  grep -qE -- "$words" <<<"$answer" || {
    echo "kubectl-shed: the answer lacks: $words" >&2
    exit 1
  }
}
kubectl wait --namespace "$namespace" --for=jsonpath='{.status.attempts.clones}'=1 deadlinejob/words --timeout=120s >&2
says "^$namespace +words " top --all-namespaces
says "^deadline 2.* (1[.]000|0[.]9[0-9]+) " whatif words --namespace "$namespace" --deadline 20m
says "^NODE +VERDICT" nodes
kubectl wait --namespace "$namespace" --for=condition=Complete deadlinejob/words --timeout=240s >&2
says "^ +3 +1 clone .* Won$" status words --namespace "$namespace"
says "^  Gain [01][.][0-9]+, price [0-9.]+" explain words --namespace "$namespace"
says "^3[.]1 c .*▓" timeline words --namespace "$namespace"
says "operator: .* [(]leads[)]" version
e2e/kubectl-shed-tmux.sh "$namespace" words
