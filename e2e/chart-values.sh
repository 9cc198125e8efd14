#!/usr/bin/env bash
# Writes the chart's values as Helm reads them, as JSON:
#
#   e2e/chart-values.sh HELM FOLDER [FILE...]
#
# The defaults go to FOLDER/0.json, and those with the first FILE to FOLDER/1.json, and so on.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
helm=$1 folder=$2
shift 2

mkdir -p "$folder/chart/templates"
cp "$here/../charts/shed/values.yaml" "$folder/chart"
printf 'apiVersion: v2\nname: values\nversion: 0.0.0\n' >"$folder/chart/Chart.yaml"
echo '{{ toJson .Values }}' >"$folder/chart/templates/values.yaml"
number=0
for file in /dev/null "$@"; do
    "$helm" template values "$folder/chart" --values "$file" | sed -n 's/^{/{/p' >"$folder/$number.json"
    number=$((number + 1))
done
