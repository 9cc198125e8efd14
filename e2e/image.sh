#!/usr/bin/env bash
# Builds shed's image and writes it as an archive.
#
#   e2e/image.sh [TAG]        localhost/shed:TAG, TAG being dev unless given
#
# The last line on standard output is the archive's path:
# ${XDG_CACHE_HOME:-~/.cache}/shed/images/shed-TAG.tar
#
# The Dockerfile's builder stage needs an image from a registry. This script
# needs none: cargo runs on the host with the flags of that stage, incremental
# from one run to the next, and the Dockerfile's target `prebuilt` takes the
# result. So the image is made as users make it, but for the compiler and the C
# library, which are the host's, and for optimization across crates.
#
# Nothing is done when neither the sources nor the toolchain changed.
#
# Environment: SHED_IMAGE_NAME (localhost/shed), CARGO (cargo), SHED_BINARY (a
# static program to put into the image; without it cargo builds one),
# CARGO_PROFILE_RELEASE_LTO (off, which saves minutes; a release has thin).
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname -- "$here")

case ${1-} in
-h | --help)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
-*)
    echo "usage: ${0##*/} [TAG]" >&2
    exit 2
    ;;
esac
tag=${1:-dev}
name=${SHED_IMAGE_NAME:-localhost/shed}
cargo=${CARGO:-cargo}
export CARGO_PROFILE_RELEASE_LTO=${CARGO_PROFILE_RELEASE_LTO:-off}
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shed
out=$cache/images/${name##*/}-$tag.tar

say() { echo "image: $*" >&2; }

[ -n "${SHED_BINARY-}" ] || command -v "$cargo" >/dev/null 2>&1 || {
    say "cargo is missing: install the Rust toolchain that Cargo.toml names (rust-version)"
    exit 1
}

[ -z "${SHED_BINARY-}" ] || [ -f "$SHED_BINARY" ] || {
    say "SHED_BINARY is $SHED_BINARY, which is no file: name a static program, or leave it out and cargo builds one"
    exit 1
}

mkdir -p "$cache/images"
# Two runs at once would compile the same twice: the second one waits, and then
# finds the work done.
exec 9>"$cache/images/.lock"
if ! flock -n 9; then
    say "waiting for another run"
    flock 9
fi

# What the image is made of, without tests and benches. The toolchain counts too: another compiler, other bytes.
cd "$root"
inputs() {
    if [ -n "${SHED_BINARY-}" ]; then
        sha256sum "$SHED_BINARY" Dockerfile e2e/image.sh e2e/build-image.sh
    else
        find Cargo.toml Cargo.lock src crates Dockerfile e2e/image.sh e2e/build-image.sh \
            -type f -not -path '*/tests/*' -not -path '*/benches/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        "$cargo" --version
        echo "LTO $CARGO_PROFILE_RELEASE_LTO"
    fi
    echo "$name:$tag"
}
digest=$(inputs | sha256sum | cut -d' ' -f1)

if [ -f "$out" ] && [ "$(cat "$out.source" 2>/dev/null)" = "$digest" ]; then
    say "$name:$tag is up to date"
    echo "$out"
    exit 0
fi

# Sets $binary.
compile() {
    target=$(rustc -vV | sed -n 's/^host: //p')
    say "compiling for $target (some 4 minutes the first time, then seconds)"
    # One target folder for all checkouts: the dependencies are compiled once. It is
    # apart from target/, whose flags differ.
    export CARGO_TARGET_DIR=$cache/target-static
    # Cargo goes by paths relative to the workspace and by times of modification: in
    # another checkout whose files are older than the last build it would take the
    # first checkout's program for up to date.
    if [ "$(cat "$CARGO_TARGET_DIR/.checkout" 2>/dev/null)" != "$root" ]; then
        "$cargo" clean --quiet --locked --workspace --release --target "$target" >&2
        mkdir -p "$CARGO_TARGET_DIR"
        echo "$root" >"$CARGO_TARGET_DIR/.checkout"
    fi
    # Programs must not depend on where they were built: sources that a build script made lie in the target folder.
    RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo \
        --remap-path-prefix=$CARGO_TARGET_DIR=/target" \
        "$cargo" build --release --locked --bin shed --target "$target" >&2
    binary=$CARGO_TARGET_DIR/$target/release/shed
}
binary=${SHED_BINARY-}
[ -n "$binary" ] || compile

# In an empty root a dynamic binary ends with "no such file or directory",
# which does not show the cause.
if grep -q 'Requesting program interpreter' <<<"$(LC_ALL=C readelf -l "$binary" 2>/dev/null)"; then
    say "$binary is not static: it needs a dynamic loader, and the image has none"
    exit 1
fi

context=$(mktemp -d "${TMPDIR:-/tmp}/shed-context.XXXXXX")
trap 'rm -rf -- "$context"' EXIT
mkdir "$context/dist"
cp Dockerfile "$context/"
cp "$binary" "$context/dist/shed"

# First away with the mark, then the archive, then the new mark: an interrupted
# run is never taken for a finished one.
rm -f -- "$out.source"
"$here/build-image.sh" "$context" "$name:$tag" "$out" \
    --target prebuilt \
    --build-arg "VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)" \
    --build-arg "REVISION=$(git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || echo unknown)" \
    --label "dev.shed.source-digest=sha256:$digest" >/dev/null
echo "$digest" >"$out.source"
echo "$out"
