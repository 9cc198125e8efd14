#!/usr/bin/env bash
# Tries a release against a registry on this machine: the chart and the image are pushed as a release pushes them, and
# the chart that is installed from there starts its own image.
#
#   e2e/release-registry.sh         packages, pushes, compares, and installs if a local cluster is up
#
# The registry and its client are one program, crane, which is built from Go modules into the user's cache. Nothing leaves
# the machine.
set -euo pipefail
cd "$(dirname "$0")/.."

release=v0.22.1
programs=${XDG_CACHE_HOME:-$HOME/.cache}/shed/crane-$release
crane=$programs/crane
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
namespace=shed-released
work=$(mktemp -d "${TMPDIR:-/tmp}/shed-registry.XXXXXX")
server='' installed=no

say() { echo "registry: $*" >&2; }
fail() {
  say "$*"
  exit 1
}
finish() {
  if [ "$installed" = yes ]; then
    "$helm" uninstall shed-released --namespace "$namespace" --wait >/dev/null 2>&1 || true
    kubectl delete namespace "$namespace" --wait=false >/dev/null 2>&1 || true
  fi
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf -- "$work"
}
trap finish EXIT

helm=$(e2e/cluster/cluster tool helm | tail -n 1)
[ -x "$crane" ] || GOBIN=$programs go install "github.com/google/go-containerregistry/cmd/crane@$release"

"$crane" registry serve --address 127.0.0.1:0 >"$work/log" 2>&1 &
server=$!
for _ in $(seq 50); do
  port=$(sed -n 's/.*serving on port \([0-9]*\).*/\1/p' "$work/log" | tail -n 1)
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || fail "the registry did not start: $(tail -n 3 "$work/log")"
address=127.0.0.1:$port

REGISTRY=$address scripts/release chart
image=$(e2e/image.sh | tail -n 1)
"$crane" push --insecure "$image" "$address/shed:$version" >/dev/null
"$helm" push "target/release-files/shed-$version.tgz" "oci://$address/charts" --plain-http >/dev/null 2>&1
say "pushed $address/shed:$version and the chart"

"$helm" pull "oci://$address/charts/shed" --version "$version" --plain-http --destination "$work" >/dev/null 2>&1
cmp "$work/shed-$version.tgz" "target/release-files/shed-$version.tgz" || fail 'the chart came back otherwise'
named=$("$helm" template shed "$work/shed-$version.tgz" --kube-version 1.34.0 | sed -n 's/^ *image: "\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' | sort -u)
for reference in $named; do
  "$crane" digest --insecure "$reference" >/dev/null || fail "the chart names $reference, which the registry lacks"
done
say "the chart names $named, which the registry has"

if ! e2e/cluster/cluster status >/dev/null 2>&1; then
  say 'no local cluster is up: the installation was not tried'
  exit 0
fi
eval "$(e2e/cluster/cluster env)"
# The nodes have a network of their own, so the image is pulled here and loaded there.
"$crane" pull --insecure "$address/shed:$version" "$work/image.tar"
e2e/cluster/cluster load "$work/image.tar"
installed=yes
"$helm" install shed-released "$work/shed-$version.tgz" --namespace "$namespace" --create-namespace \
  --set image.pullPolicy=IfNotPresent,replicas=1 --wait --timeout 3m >/dev/null
found=$(kubectl --namespace "$namespace" get pods --output 'jsonpath={.items[0].spec.containers[0].image}')
[ "$found" = "$address/shed:$version" ] || fail "the pod runs $found"
say "the installed chart runs $found, and is ready"
