#!/usr/bin/env bash
# Tests the chart: without a cluster, or against one.
#
#   e2e/chart-test.sh             lint, rendering, schema
#   e2e/chart-test.sh --write     the same, and writes docs/reference/chart-refusals.md
#   e2e/chart-test.sh --cluster   against the cluster of KUBECONFIG, where the
#                                 chart is installed: rights, admission policy,
#                                 the CRD's messages, examples, manifests of the pages
#   e2e/chart-test.sh --life-cycle
#                                 against the same, which it upgrades, uninstalls
#                                 and installs again while a job runs
#
# Every file of charts/shed/ci must lint and render; a line `# expect: REGEX` in
# it must match a line of the result, `# reject: REGEX` none. Every file of
# charts/shed/ci/bad must be refused by the schema or a template, with what its
# `# expect:` says in the message.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
chart=charts/shed
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$1" >&2
    [ -z "${2-}" ] || printf '%s\n' "$2" | sed 's/^/    /' >&2
}
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
# The values of `# WORD: …` lines of a file.
marks() { sed -n "s/^# $1: //p" "$2"; }

find_tool() {
    command -v "$1" || e2e/cluster/cluster tool "$1" | tail -n 1
}

# The dashboards are valid and show only exported metrics. promtool parses each query, and each returns data where every
# metric has a series.
dashboards() {
    local out promtool files=("$chart"/files/dashboards/*.json)
    promtool=$(find_tool promtool)
    if out=$(python3 -B e2e/dashboards check "${files[@]}" 2>&1) && [ -z "$out" ]; then
        ok
    else
        bad "dashboards" "$out"
    fi
    python3 -B e2e/dashboards rules "${files[@]}" >"$work/queries.yaml"
    if out=$("$promtool" check rules --lint=none "$work/queries.yaml" 2>&1); then ok; else bad "queries of dashboards" "$out"; fi
    python3 -B e2e/dashboards samples "${files[@]}" >"$work/samples.yaml"
    if out=$("$promtool" test rules "$work/samples.yaml" 2>&1); then ok; else bad "queries without data" "$out"; fi
    # The chart changes the error budget and nothing else.
    if out=$("$1" template shed "$chart" --kube-version 1.34.0 --show-only templates/dashboards.yaml \
        --set metrics.dashboards.enabled=true | python3 -B e2e/dashboards compare "${files[@]}" 2>&1) && [ -z "$out" ]; then
        ok
    else
        bad "ConfigMaps of dashboards" "$out"
    fi
}

# Each object that the chart renders (in $work/objects/rendered) as a line of JSON in $work/objects.jsonl.
as_json() {
    # Helm turns YAML into JSON.
    mkdir -p "$work/objects/templates"
    printf 'apiVersion: v2\nname: objects\nversion: 0.0.0\n' >"$work/objects/Chart.yaml"
    cat >"$work/objects/templates/objects.yaml" <<'TEMPLATE'
{{- range $path, $_ := .Files.Glob "rendered/*" }}
{{- range regexSplit "(?m)^---$" ($.Files.Get $path) -1 }}
{{- with fromYaml . }}
---
{{ dict "file" (base $path) "object" . | toJson }}
{{- end }}
{{- end }}
{{- end }}
TEMPLATE
    "$1" template objects "$work/objects" | sed -n '/^{/p' >"$work/objects.jsonl"
}

# Prometheus can load the rules of each PrometheusRule, a kind whose schema is not here.
rules() {
    local out promtool
    promtool=$(find_tool promtool)
    python3 - "$work" "$work/objects.jsonl" <<'PYTHON'
import json, sys

for line in open(sys.argv[2]):
    found = json.loads(line)
    if found["object"]["kind"] == "PrometheusRule":
        json.dump(found["object"]["spec"], open(f"{sys.argv[1]}/rules-of-{found['file']}", "w"))
PYTHON
    if out=$("$promtool" check rules --lint=all --lint-fatal "$work"/rules-of-*.yaml 2>&1); then ok; else bad "rules of a PrometheusRule" "$out"; fi
}

# Each of these objects is valid in each supported minor of Kubernetes. The
# schemas are in the Go modules that e2e/cluster builds Kubernetes from.
schemas() {
    local out expected folder version cache present=()
    cache=$(go env GOMODCACHE 2>/dev/null) || cache=
    for version in e2e/cluster/kube/*/; do
        version=$(basename "$version")
        folder=$cache/k8s.io/kubernetes@v$version/api/openapi-spec/v3
        if [ -d "$folder" ]; then present+=("$folder"); else echo "skipped: the schemas of Kubernetes $version (go mod download k8s.io/kubernetes@v$version)"; fi
    done
    [ "${#present[@]}" != 0 ] || return 0
    if out=$(e2e/chart-schemas.py "${present[@]}" <"$work/objects.jsonl") && [ -z "$out" ]; then
        ok
    else
        bad "rendered objects" "$out"
    fi

    # The check finds what is wrong.
    out=$(e2e/chart-schemas.py "${present[0]}" <<'OBJECTS'
{"file": "wrong", "object": {"apiVersion": "v1", "kind": "Service", "metadata": {"label": {}}}}
{"file": "wrong", "object": {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"name": "x"}]}}}
{"file": "wrong", "object": {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": "80", "targetPort": true}]}}}
{"file": "wrong", "object": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3000000000, "selector": {}, "template": {}}}}
{"file": "wrong", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"team": "-"}}, "spec": {"containers": []}}}
{"file": "wrong", "object": {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"maxUnavailable": 1.5}}}
OBJECTS
    ) || true
    for expected in 'Service.metadata.label: unknown field' 'Service.spec.ports[0].port: required' \
        'Service.spec.ports[0].port: "80" is not of type integer' 'Service.spec.ports[0].targetPort: true is not one of' \
        'Pod.metadata.labels: team=- is not a label' 'Deployment.spec.replicas: 3000000000 does not fit' 'PodDisruptionBudget.spec.maxUnavailable: 1.5 is not one of'; do
        if grep -Fq "$expected" <<<"$out"; then ok; else bad "the check of schemas does not find '$expected'" "$out"; fi
    done
}

offline() {
    local helm file out page expected version refusals=
    helm=$(find_tool helm)
    work=$(mktemp -d "${TMPDIR:-/tmp}/shed-chart.XXXXXX")
    trap 'rm -rf -- "$work"' EXIT
    mkdir -p "$work/objects/rendered"

    if out=$("$helm" lint --strict "$chart" 2>&1); then ok; else bad "lint" "$out"; fi

    for file in "$chart"/ci/*.yaml; do
        if out=$("$helm" lint --strict --values "$file" "$chart" 2>&1); then ok; else bad "lint $file" "$out"; fi
        if ! out=$("$helm" template shed "$chart" --namespace shed-system --kube-version 1.34.0 --values "$file" 2>&1); then
            bad "render $file" "$out"
            continue
        fi
        # The CRD is the same in all of them and 14 000 lines long: only its head is of interest.
        awk -v keep="${file##*/}" '/^# Source: /{crd = /crd.yaml$/} !crd || keep == "default-values.yaml"' <<<"$out" \
            >"$work/objects/rendered/${file##*/}"
        out=$(awk '/^# Source: /{crd = /crd.yaml$/; n = 0} !crd || n++ < 20' <<<"$out")
        ok
        while IFS= read -r expected; do
            if grep -Eq -- "$expected" <<<"$out"; then ok; else bad "$file: nothing matches $expected"; fi
        done < <(marks expect "$file")
        while IFS= read -r expected; do
            if grep -Eq -- "$expected" <<<"$out"; then bad "$file: something matches $expected"; else ok; fi
        done < <(marks reject "$file")
    done

    for file in "$chart"/ci/bad/*.yaml; do
        if out=$("$helm" template shed "$chart" --kube-version 1.34.0 --values "$file" 2>&1); then
            bad "$file was not refused"
        elif grep -Fq -- "$(marks expect "$file")" <<<"$out" && grep -Eq "don't meet the specifications of the schema|execution error at" <<<"$out"; then
            ok
            refusals+=$file$'\t'$(sed -nE -e '/^Error: execution error at/{s/^Error: execution error at \([^)]*\): //p;q}' -e '/^- at /{p;q}' <<<"$out")$'\n'
        else
            bad "$file was refused for another reason" "$out"
        fi
    done

    # The page that lists these lines.
    # A point ends it, because $(…) drops the last newline.
    if ! page=$(printf %s "$refusals" | e2e/chart-docs.py refusals "$chart" "$chart"/ci/bad/*.yaml && echo .); then
        bad "docs/reference/chart-refusals.md: some value of $chart/ci/bad was not refused as expected"
    else
        if [ "${1-}" = --write ]; then printf %s "${page%.}" >docs/reference/chart-refusals.md; fi
        if out=$(diff -u docs/reference/chart-refusals.md <(printf %s "${page%.}")); then
            ok
        else
            bad "docs/reference/chart-refusals.md: run e2e/chart-test.sh --write and commit the result" "$(head -n 30 <<<"$out")"
        fi
    fi

    # Each value is changed by some file of ci.
    e2e/chart-values.sh "$helm" "$work" "$chart"/ci/*.yaml
    if out=$(e2e/chart-docs.py unused "$chart" "$work"/*.json) && [ -z "$out" ]; then
        ok
    else
        bad "values that no file of $chart/ci changes" "$out"
    fi

    # --set passes a fraction as a text.
    if out=$("$helm" template shed "$chart" --kube-version 1.34.0 --api-versions monitoring.coreos.com/v1 \
        --set cloneBudget=0.3,capacityShare=0.5,clonePrice.perAttempt=0.04,clonePrice.perSlotSecond=0.001 \
        --set metrics.prometheusRule.enabled=true,metrics.prometheusRule.errorBudget=0.02,metrics.prometheusRule.errorBudgets.team-a=0.16 2>&1); then
        for expected in 'value: "0.3"' 'value: "0.5"' 'value: "0.04"' 'value: "0.001"' '+ 0.02' 'vector(0.16)'; do
            if grep -Fq -- "$expected" <<<"$out"; then ok; else bad "--set of fractions: nothing has $expected"; fi
        done
    else
        bad "--set of fractions" "$out"
    fi
    for expected in cloneBudget=20.1 cloneBudget=-0.1 capacityShare=0.0 capacityShare=1.01 clonePrice.perAttempt=1.5 \
        metrics.prometheusRule.errorBudget=0.17 metrics.prometheusRule.errorBudget=0.161 metrics.prometheusRule.errorBudgets.team-a=0.0; do
        if out=$("$helm" template shed "$chart" --kube-version 1.34.0 --set "$expected" 2>&1); then
            bad "--set $expected was not refused"
        elif grep -Fq 'does not match pattern' <<<"$out"; then
            ok
        else
            bad "--set $expected was refused for another reason" "$out"
        fi
    done

    # A variable that the chart sets cannot be set once more, whichever it is.
    while IFS= read -r expected; do
        out=$("$helm" template shed "$chart" --kube-version 1.34.0 --show-only templates/deployment.yaml \
            --set "extraEnv[0].name=$expected,extraEnv[0].value=x" 2>&1) || true
        if grep -Eq "extraEnv: (the chart sets )?$expected( must fit|; use the value)" <<<"$out"; then ok; else bad "extraEnv: $expected was not refused" "$(tail -n 3 <<<"$out")"; fi
    done < <(grep -ohE '\bSHED_[A-Z0-9_]+' "$chart"/templates/deployment.yaml "$chart"/templates/_helpers.tpl | sort -u)

    # Older clusters lack what the chart rests on: refuse them, don't half work.
    if out=$("$helm" template shed "$chart" --kube-version 1.32.13 2>&1); then
        bad "Kubernetes 1.32 was not refused"
    else
        ok
    fi

    # The Prometheus Operator is found by the API that the cluster serves.
    out=$("$helm" template shed "$chart" --kube-version 1.34.0 --api-versions monitoring.coreos.com/v1 \
        --set metrics.serviceMonitor.enabled=true 2>&1) || true
    if grep -q '^kind: ServiceMonitor$' <<<"$out"; then ok; else bad "a ServiceMonitor where its API is served" "$out"; fi

    # Alerts of the platform have the namespace of the release.
    out=$("$helm" template shed "$chart" --namespace batch --kube-version 1.34.0 --show-only templates/prometheusrule.yaml \
        --set metrics.prometheusRule.enabled=true,metrics.assumePrometheusOperator=true 2>&1) || true
    if grep -q '^ *namespace: batch$' <<<"$out" && ! grep -q shed-system <<<"$out"; then ok; else bad "alerts of a release in another namespace"; fi

    # The policy that sets managedBy is there where the apiserver has the API, by its newest version.
    for expected in "1.33.13 v1 none" "1.34.4 v1beta1 v1beta1" "1.36.3 v1 v1" "1.37.2 v1 v1"; do
        read -r version api expected <<<"$expected"
        out=$("$helm" template shed "$chart" --kube-version "$version" --show-only templates/jobpolicies.yaml \
            --api-versions "admissionregistration.k8s.io/$api/MutatingAdmissionPolicy" 2>&1) || true
        out=$(grep -B1 '^kind: MutatingAdmissionPolicy$' <<<"$out" | sed -n 's#^apiVersion: admissionregistration.k8s.io/##p') || true
        if [ "${out:-none}" = "$expected" ]; then ok; else bad "the policy that sets managedBy on $version: '$out', not $expected"; fi
        out=$("$helm" template shed "$chart" --kube-version "$version" --set adoptJobs=none \
            --api-versions "admissionregistration.k8s.io/$api/MutatingAdmissionPolicy" 2>&1) || true
        if grep -q '^kind: MutatingAdmissionPolicy' <<<"$out"; then bad "a policy that sets managedBy with adoptJobs: none"; else ok; fi
    done

    # Each alert has a runbook and a line in the list, and a value may leave it out.
    out=$(sed -n 's/^ *- alert: //p' "$chart/files/alerts.yaml" | sort)
    if [ "$(wc -l <<<"$out")" -le 12 ]; then ok; else bad "more than 12 alerts" "$out"; fi
    for file in docs/runbooks.md docs/reference/alerts.md "$chart/values.schema.json"; do
        expected=$(case $file in
            */runbooks.md) sed -n 's/^## \(Shed.*\)/\1/p' "$file" ;;
            *.md) sed -nE 's/^\| \[(Shed[A-Za-z]+)\].*/\1/p' "$file" ;;
            *) grep -oE '"Shed[A-Z][A-Za-z]+"' "$file" | tr -d '"' ;;
            esac | sort)
        if [ "$out" = "$expected" ]; then ok; else bad "the alerts of $file" "$(diff <(echo "$out") <(echo "$expected"))"; fi
    done

    # The page has each alert's labels.
    if out=$(e2e/chart-docs.py labels "$chart/files/alerts.yaml" docs/reference/alerts.md) && [ -z "$out" ]; then
        ok
    else
        bad "labels of alerts in docs/reference/alerts.md" "$out"
    fi

    # The longest name of a release, with and without values of the same length.
    out=$(printf 'r%.0s' {1..53})
    for file in /dev/null "$chart/ci/long-labels-values.yaml"; do
        "$helm" template "$out" "$chart" --namespace shed-system --kube-version 1.34.0 --values "$file" \
            >"$work/objects/rendered/long-release-of-${file##*/}"
    done
    as_json "$helm"
    schemas
    rules

    # It is the same in each supported minor.
    for version in e2e/cluster/kube/*/; do
        out=$("$helm" template shed "$chart" --namespace shed-system --kube-version "$(basename "$version")" 2>&1) || true
        if diff -q "$work/objects/rendered/default-values.yaml" - <<<"$out" >/dev/null; then ok; else bad "the defaults on $version"; fi
    done

    dashboards "$helm"

    # A property that has no type or no description explains nothing. The line that refuses a
    # value shows a pattern, so the description has an example.
    if out=$(python3 - "$chart/values.schema.json" <<'PYTHON'
import json, sys

def walk(node, path):
    for name, child in node.get("properties", {}).items():
        here = f"{path}.{name}"
        if not child.get("description") or "type" not in child:
            print(f"{here}: no type or no description")
        if "pattern" in child and "e.g." not in child.get("description", ""):
            print(f"{here}: a pattern without an example")
        # A parent chart has other global values.
        if here != ".global" and child.get("type") == "object" and "properties" in child and child.get("additionalProperties") is not False:
            print(f"{here}: open")
        walk(child, here)
        if isinstance(child.get("items"), dict):
            walk(child["items"], here + "[]")

walk(json.load(open(sys.argv[1])), "")
PYTHON
    ) && [ -z "$out" ]; then ok; else bad "values.schema.json" "$out"; fi

    # Artifact Hub reads lists from the text of annotations.
    for expected in 'kind: (added|changed|deprecated|removed|fixed|security)' 'kind: DeadlineJob'; do
        if grep -Eq -- "- $expected$" <<<"$("$helm" show chart "$chart")"; then ok; else bad "Chart.yaml: no $expected for Artifact Hub"; fi
    done
    out=$("$helm" show chart "$chart" | sed -nE 's/^ +- kind: ([a-z]+)$/\1/p' | grep -vxE 'added|changed|deprecated|removed|fixed|security') || true
    if [ -z "$out" ]; then ok; else bad "Chart.yaml: Artifact Hub knows no change of the kind" "$out"; fi

    version=$(sed -n 's/^appVersion: "\(.*\)"/\1/p' "$chart/Chart.yaml")
    if grep -q "^version = \"$version\"" Cargo.toml; then ok; else bad "appVersion $version isn't the version of Cargo.toml"; fi
}

case ${1-} in
"" | --write) offline "$@" ;;
--cluster)
    # shellcheck source=/dev/null
    . "$here/chart-cluster.sh"
    ;;
--life-cycle)
    # shellcheck source=/dev/null
    . "$here/chart-life-cycle.sh"
    ;;
*)
    echo "usage: ${0##*/} [--write | --cluster | --life-cycle]" >&2
    exit 2
    ;;
esac
finish
