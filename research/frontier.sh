#!/usr/bin/env bash
# Makes docs/research/frontier.md and docs/research/bars.md with their figures and data, by `shed-lab frontier`.
#
#   research/frontier.sh              both
#   research/frontier.sh prices       the prices of a clone alone
#   research/frontier.sh bars         the bars alone
#
# SHED_TRACES is the folder of the traces. SEEDS are those of the prices (200..210), POLICIES the other policies of their
# figures (all), FIRST_SEEDS those that each cell of the bars has at first (200..220), MOST_SEEDS the most of a cell
# (400), THREADS how many runs are made at a time (1). The results are kept in target/frontier, in a file of the measured commit, so that a run that was stopped goes on and
# another version begins again.
set -euo pipefail
cd "$(dirname "$0")/.."

part=${1-both}
case $part in
  prices | bars | both) ;;
  *)
    echo "error: unknown part $part; the parts are prices, bars and both" >&2
    exit 2
    ;;
esac
measured=(crates/shed-core crates/shed-papers crates/shed-record crates/shed-sim research/Cargo.lock)
if [ -n "$(git status --porcelain -- "${measured[@]}")" ]; then
  echo "error: ${measured[*]} have changes without a commit; commit them, so that the pages can name what they measured" >&2
  exit 2
fi
commit=$(git log -1 --format=%h --abbrev=10 -- "${measured[@]}")
frozen=$(research/frozen.sh)
cargo build --locked --release --quiet --manifest-path research/Cargo.toml
mkdir -p target/frontier
folder=${CARGO_TARGET_DIR:-research/target}

frontier() {
  "$folder/release/shed-lab" frontier --results "target/frontier/$commit.jsonl" --frozen "$frozen" --threads "${THREADS:-1}" \
    --revision "commit $commit" --format csv "$@"
}

if [ "$part" != bars ]; then
  frontier --seed "${SEEDS:-200..210}" ${POLICIES:+--policy "$POLICIES"} --out docs/research/frontier.md --data docs/research/data/frontier.csv >/dev/null
fi
if [ "$part" != prices ]; then
  frontier --bars --seed "${FIRST_SEEDS:-200..220}" --most-seeds "${MOST_SEEDS:-400}" --out docs/research/bars.md \
    >docs/research/data/bars.csv
fi
