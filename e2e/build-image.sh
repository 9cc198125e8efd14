#!/usr/bin/env bash
# Builds a container image without a container engine or a registry and writes
# it as an archive that `ctr image import` and `docker load` take.
#
#   e2e/build-image.sh CONTEXT_DIR NAME:TAG OUT.tar [buildah build arguments…]
#
# The Dockerfile lies in CONTEXT_DIR and starts FROM scratch: the image store
# is made for this one build and thrown away after it, so that nothing piles up
# and two builds at once don't meet. The same input gives the same archive, byte
# for byte: all timestamps are those of SOURCE_DATE_EPOCH, or 0.
#
# The last line on standard output is OUT.tar; progress goes to standard error.
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: ${0##*/} CONTEXT_DIR NAME:TAG OUT.tar [buildah build arguments…]" >&2
    exit 2
fi
context=$1 name=$2 out=$3
shift 3

say() { echo "image: $*" >&2; }

if [ ! -f "$context/Dockerfile" ]; then
    say "$context has no Dockerfile"
    exit 2
fi
case ${name##*/} in
*:*) ;;
*)
    say "$name has no tag: give NAME:TAG"
    exit 2
    ;;
esac

if ! command -v buildah >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing buildah"
        {
            apt-get install -y -q --no-install-recommends buildah ||
                { apt-get update -q && apt-get install -y -q --no-install-recommends buildah; }
        } >&2
    else
        say "buildah is missing. Install it: sudo apt-get install -y buildah"
        exit 1
    fi
fi

mkdir -p "$(dirname -- "$out")"
store=$(mktemp -d "${TMPDIR:-/tmp}/shed-image.XXXXXX")
trap 'rm -rf -- "$store"' EXIT

# The distribution's default policy file comes with a recommended package and
# may be absent; nothing is pulled here, so there is no signature to check.
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$store/policy.json"
# vfs and chroot need neither overlay mounts nor an init system.
storage=(--root "$store/root" --runroot "$store/run" --storage-driver vfs)

say "building $name"
log=$store/log
if ! {
    buildah "${storage[@]}" build --isolation chroot --pull-never \
        --signature-policy "$store/policy.json" \
        --timestamp "${SOURCE_DATE_EPOCH:-0}" --tag "$name" "$@" "$context" &&
        # Written next to its final place and renamed: a reader of the archive
        # meanwhile sees the old one or the new one, never half of it.
        buildah "${storage[@]}" push --signature-policy "$store/policy.json" \
            "$name" "docker-archive:$store/image.tar:$name"
} >"$log" 2>&1; then
    cat "$log" >&2
    say "building $name failed"
    exit 1
fi
mv -f -- "$store/image.tar" "$out.$$"
mv -f -- "$out.$$" "$out"
say "wrote $out ($(($(stat -c %s -- "$out") / 1024)) KiB)"
echo "$out"
