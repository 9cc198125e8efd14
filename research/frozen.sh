#!/usr/bin/env bash
# Builds shed-sim as shed-prime was before its passes became rarer and clones got a price, for `shed-lab frontier --frozen`.
#
#   research/frozen.sh           that commit
#   research/frozen.sh COMMIT    another one
#
# It exports the commit's sources with git archive, builds them in a folder of their own, and prints the path of the
# program, which stays in ${XDG_CACHE_HOME:-~/.cache}/shed/frozen. A program that is there is not built again.
set -euo pipefail
cd "$(dirname "$0")/.."

# The last one before passes became rarer and clones got a price.
commit=${1-1293e5c039855064efc430bca137e8eb123c8a83}
if ! commit=$(git rev-parse --verify --quiet "$commit^{commit}"); then
  echo "error: commit ${1-} is not in this repository; a shallow clone needs: git fetch --unshallow" >&2
  exit 2
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/shed/frozen
program=$cache/shed-sim-$commit
if [ ! -x "$program" ]; then
  echo "building shed-sim of $commit in $cache (about 3 minutes)" >&2
  sources=$cache/$commit
  mkdir -p "$sources"
  trap 'rm -rf "$sources"' EXIT
  git archive "$commit" | tar -x -C "$sources"
  # Without LTO the build is quicker, and runs are the same bit by bit.
  (cd "$sources" && CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR="$sources/target" \
    cargo build --locked --release --quiet --package shed-sim >&2)
  cp "$sources/target/release/shed-sim" "$program.part"
  mv "$program.part" "$program"
fi
echo "$program"
