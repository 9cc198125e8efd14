#!/usr/bin/env bash
# Looks at the live page in a real Chromium: live updates, 10 000 tasks, keyboard, accessibility (axe-core).
#
#   e2e/page.sh                 by `kubectl shed page` on a cluster with shed, with the current kubeconfig
#   e2e/page.sh --front         without a cluster: the page's files with made-up data
#   … --report DIR              also writes the pictures of the docs below DIR (docs)
#
# The first run downloads two npm packages of fixed versions (e2e/page/package-lock.json) into the user's cache, and as root
# it installs Debian's Chromium if none is there.
#
# Environment:
#   SHED_CHROMIUM=PROGRAM       a Chromium or Chrome (default: the first of chromium, chromium-browser, google-chrome)
#   SHED_E2E_BUSYBOX=IMAGE      an image with a shell (default localhost/busybox:test)
#   KUBECTL_SHED=PROGRAM        kubectl-shed (default: cargo builds one)
set -euo pipefail
cd "$(dirname "$0")/.."

backend=cluster report=''
while [ $# -gt 0 ]; do
  case $1 in
  --front) backend=fixture ;;
  --report)
    report=${2:?--report needs a folder}
    shift
    ;;
  *)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
  esac
  shift
done
say() { echo "page: $*" >&2; }

node=$(command -v node) || {
  say 'node is missing: install Node.js 20.19 or later'
  exit 1
}
# Since then a file .js may be a module without a package that says so.
"$node" -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' || {
  say "Node.js $("$node" --version) is too old: install 20.19 or later"
  exit 1
}

find_chromium() {
  local name
  for name in ${SHED_CHROMIUM-} chromium chromium-browser google-chrome; do
    if command -v "$name"; then return; fi
  done
  return 1
}
if ! chromium=$(find_chromium); then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say 'installing Chromium'
    apt-get install -y -q --no-install-recommends chromium >&2 ||
      { apt-get update -q >&2 && apt-get install -y -q --no-install-recommends chromium >&2; }
    chromium=$(find_chromium)
  else
    say 'Chromium is missing: install it (sudo apt-get install chromium), or name one in SHED_CHROMIUM'
    exit 1
  fi
fi

# Another list of packages, another folder.
modules=${XDG_CACHE_HOME:-$HOME/.cache}/shed/page-$(sha256sum e2e/page/package-lock.json | cut -c1-12)
if [ ! -e "$modules/.complete" ]; then
  say "installing the packages of e2e/page/package-lock.json into $modules"
  rm -rf -- "$modules"
  mkdir -p "$modules"
  cp e2e/page/package.json e2e/page/package-lock.json "$modules/"
  npm ci --prefix "$modules" --ignore-scripts --no-audit --no-fund --silent >&2
  touch "$modules/.complete"
fi

if [ "$backend" = cluster ] && [ -z "${KUBECTL_SHED-}" ]; then
  cargo build --quiet --locked --workspace --bin kubectl-shed
  KUBECTL_SHED=${CARGO_TARGET_DIR:-target}/debug/kubectl-shed
  export KUBECTL_SHED
fi

export SHED_PAGE_BACKEND=$backend SHED_PAGE_MODULES=$modules SHED_CHROMIUM=$chromium
if [ -n "$report" ]; then
  SHED_PAGE_PICTURES=$(realpath "$report")/how-to/pictures
  export SHED_PAGE_PICTURES
fi
exec "$node" --test --test-reporter=spec --test-concurrency=1 e2e/page/units_test.mjs e2e/page/page_test.mjs
