#!/usr/bin/env bash
# Prints the krew manifest of a release, with the checksums of its archives.
#
#   krew/fill.sh VERSION BASE_URL FOLDER
#
# FOLDER has kubectl-shed-OS-ARCH.tar.gz for each platform of the release, and BASE_URL is where they are published.
set -euo pipefail
if [ "$#" != 3 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
version=${1#v} base=${2%/} folder=$3
if ! [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "krew/fill.sh: VERSION $1 is not a version such as 0.1.0" >&2
  exit 1
fi
if ! [[ $base =~ ^https://[^[:space:]|\&]+$ ]]; then
  echo "krew/fill.sh: BASE_URL $2 is not an https address" >&2
  exit 1
fi
text=$(<"$(dirname "$0")/shed.yaml")
shopt -s nullglob
archives=("$folder"/kubectl-shed-*-*.tar.gz)
if [ "${#archives[@]}" = 0 ]; then
  echo "krew/fill.sh: $folder has no kubectl-shed-OS-ARCH.tar.gz: build the plugin first" >&2
  exit 1
fi
for archive in "${archives[@]}"; do
  file=${archive##*/}
  if ! [[ $file =~ ^kubectl-shed-(linux|darwin|windows)-(amd64|arm64)\.tar\.gz$ ]]; then
    echo "krew/fill.sh: $archive names no platform of Go such as linux-amd64" >&2
    exit 1
  fi
  sum=$(sha256sum <"$archive")
  text+="
    - selector:
        matchLabels:
          os: ${BASH_REMATCH[1]}
          arch: ${BASH_REMATCH[2]}
      uri: \"@BASE_URL@/$file\"
      sha256: \"${sum%% *}\"
      bin: kubectl-shed"
done
text=${text//@VERSION@/$version}
text=${text//@BASE_URL@/$base}
# The files of a release on GitHub are below the page of the project.
text=${text//@HOMEPAGE@/${base%%/releases/download/*}}
# The comment is about the template.
sed '/^#/d' <<<"$text"
