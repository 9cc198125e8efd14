#!/usr/bin/env bash
# Prints the krew manifest of a release, with the checksums of its archives.
#
#   krew/fill.sh VERSION BASE_URL FOLDER
#
# FOLDER has kubectl-shed-OS-ARCH.tar.gz for each platform of krew/shed.yaml, and BASE_URL is where they are published.
# A platform without an archive is an error, because krew would offer a plugin that cannot be downloaded.
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
for platform in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do
  archive=$folder/kubectl-shed-$platform.tar.gz
  if ! [ -f "$archive" ]; then
    echo "krew/fill.sh: $archive is missing" >&2
    exit 1
  fi
  sum=$(sha256sum <"$archive")
  name=${platform^^}
  text=${text//@SHA256_${name//-/_}@/${sum%% *}}
done
text=${text//@VERSION@/$version}
text=${text//@BASE_URL@/$base}
# The comment is about the template.
sed '/^#/d' <<<"$text"
