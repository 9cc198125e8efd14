#!/usr/bin/env bash
# Renews what is generated from the sources:
#
#   charts/shed/files/deadlinejobs.yaml      from the types in src/api; crds/deadlinejobs.yaml is a link to it
#   manifests/install.yaml                   from the chart, without the CRD
#   manifests/alerts.yaml                    a copy of the chart's
#   charts/shed/README.md                    from its values and README.md.in
#   charts/shed/files/dashboards/            from e2e/dashboards
#   docs/reference/metrics.md                from the metrics that the operator registers
#   docs/reference/rights.md                 from the chart's roles
#
# A release writes the JSON schema of the DeadlineJob and the models in clients/.
#
#   e2e/generate.sh             writes them
#   e2e/generate.sh --check     fails if one of them differs, and changes nothing
#
# Environment: SHED, a built `shed` to print the CRD and the metrics with;
# without it cargo builds one.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

case ${1-} in
"") check=false ;;
--check) check=true ;;
*)
    echo "usage: ${0##*/} [--check]" >&2
    exit 2
    ;;
esac

helm=$(command -v helm || e2e/cluster/cluster tool helm | tail -n 1)
work=$(mktemp -d "${TMPDIR:-/tmp}/shed-generate.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

if [ -n "${SHED-}" ]; then
    "$SHED" crds >"$work/crd.yaml"
    "$SHED" metrics >"$work/metrics.md"
else
    cargo run --quiet --locked --bin shed -- crds >"$work/crd.yaml"
    cargo run --quiet --locked --bin shed -- metrics >"$work/metrics.md"
fi

# From a copy of the chart with the new CRD in it, so that --check writes nothing.
cp -r charts/shed "$work/shed"
cp "$work/crd.yaml" "$work/shed/files/deadlinejobs.yaml"
{
    cat <<'HEAD'
# Generated from charts/shed by e2e/generate.sh. Don't edit.
#
#   kubectl apply --server-side -f crds/deadlinejobs.yaml -f manifests/install.yaml
#
# Server-side, because the CRD is too large for the annotation of client-side
# apply. The image is the chart's default: change it to where yours is.
apiVersion: v1
kind: Namespace
metadata:
  name: shed-system
  labels:
    app.kubernetes.io/name: shed
    app.kubernetes.io/part-of: shed
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
HEAD
    # Labels that would say Helm manages these objects: here no release does.
    "$helm" template shed "$work/shed" --namespace shed-system --kube-version 1.34.0 --no-hooks --set crds.enabled=false |
        sed -e '/^ *app\.kubernetes\.io\/managed-by: Helm$/d' -e '/^ *helm\.sh\/chart: /d'
} >"$work/install.yaml"

e2e/chart-values.sh "$helm" "$work/values"
e2e/chart-docs.py readme charts/shed "$work/values/0.json" >"$work/README.md"
python3 -B e2e/dashboards write "$work/dashboards"

# The roles as JSON, one object per line: Helm turns YAML into it.
mkdir -p "$work/roles/templates"
printf 'apiVersion: v2\nname: roles\nversion: 0.0.0\n' >"$work/roles/Chart.yaml"
cat >"$work/roles/templates/roles.yaml" <<'TEMPLATE'
{{- range regexSplit "(?m)^---$" (.Files.Get "rbac.yaml") -1 }}
{{- with fromYaml . }}
---
{{ toJson . }}
{{- end }}
{{- end }}
TEMPLATE
roles() {
    "$helm" template shed "$work/shed" --namespace shed-system --kube-version 1.34.0 --show-only templates/rbac.yaml "$@" \
        >"$work/roles/rbac.yaml"
    "$helm" template roles "$work/roles" | sed -n '/^{/p'
}
roles >"$work/roles/default.jsonl"
roles --set adoptJobs=none >"$work/roles/none.jsonl"
roles --set metrics.secure.enabled=true >"$work/roles/secure.jsonl"
roles --set lease.create=false >"$work/roles/lease.jsonl"
roles --set kueue.slackClasses=true >"$work/roles/slack.jsonl"
e2e/chart-docs.py rights "=$work/roles/default.jsonl" "adoptJobs: none=$work/roles/none.jsonl" \
    "metrics.secure.enabled: true=$work/roles/secure.jsonl" \
    "lease.create: false=$work/roles/lease.jsonl" \
    "kueue.slackClasses: true=$work/roles/slack.jsonl" >"$work/rights.md"

drift=0
put() {
    if cmp -s "$1" "$2"; then
        return
    fi
    if $check; then
        echo "$2 is not what the sources give:" >&2
        # diff ends with 1 when it finds a difference, which is the point.
        { diff -u --label "$2" --label "$2 (generated)" "$2" "$1" || true; } | head -n 40 >&2
        drift=1
    else
        mkdir -p "$(dirname -- "$2")"
        cp "$1" "$2"
        echo "wrote $2"
    fi
}
put "$work/crd.yaml" charts/shed/files/deadlinejobs.yaml
put "$work/install.yaml" manifests/install.yaml
put charts/shed/files/alerts.yaml manifests/alerts.yaml
put "$work/README.md" charts/shed/README.md
for file in "$work"/dashboards/*; do
    put "$file" "charts/shed/files/dashboards/${file##*/}"
done
put "$work/metrics.md" docs/reference/metrics.md
put "$work/rights.md" docs/reference/rights.md

if [ "$drift" != 0 ]; then
    echo "run e2e/generate.sh and commit the result" >&2
    exit 1
fi
