{{/* The chart's name. */}}
{{- define "shed.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
The name of objects: the release's and the chart's, or only the release's where
it already holds the chart's. 63 characters, the limit of a DNS label, less the
longest suffix that templates add.
*/}}
{{- define "shed.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shed.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "shed.labels" -}}
helm.sh/chart: {{ include "shed.chart" . }}
{{ include "shed.selectorLabels" . }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
app.kubernetes.io/part-of: shed
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The labels of every object with further labels, which take precedence over `commonLabels`. */}}
{{- define "shed.labelsAnd" -}}
{{- toYaml (merge (dict) (.labels | default dict) (include "shed.labels" .root | fromYaml)) }}
{{- end }}

{{- define "shed.selectorLabels" -}}
app.kubernetes.io/name: {{ include "shed.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "shed.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "shed.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/*
An image reference from `global.imageRegistry` if it is set. As in a Docker
reference, the first part is a registry if it has a dot or a port, or is localhost.
*/}}
{{- define "shed.fromRegistry" -}}
{{- $registry := .root.Values.global.imageRegistry }}
{{- if $registry }}
{{- $parts := regexSplit "/" .image 2 }}
{{- $first := first $parts }}
{{- if and (eq (len $parts) 2) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) }}
{{- printf "%s/%s" $registry (last $parts) }}
{{- else }}
{{- printf "%s/%s" $registry .image }}
{{- end }}
{{- else }}
{{- .image }}
{{- end }}
{{- end }}

{{- define "shed.image" -}}
{{- $repository := include "shed.fromRegistry" (dict "root" . "image" .Values.image.repository) }}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" $repository .digest }}
{{- else }}
{{- printf "%s:%s" $repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shed.agentImage" -}}
{{- if .Values.agent.image }}
{{- include "shed.fromRegistry" (dict "root" . "image" .Values.agent.image) }}
{{- else }}
{{- include "shed.image" . }}
{{- end }}
{{- end }}

{{/* Empty if clones keep the priority of the job's template. */}}
{{- define "shed.clonePriorityClassName" -}}
{{- if .Values.clonePriorityClass.name }}
{{- .Values.clonePriorityClass.name }}
{{- else if .Values.clonePriorityClass.create }}
{{- printf "%s-clones" (include "shed.fullname" .) }}
{{- end }}
{{- end }}

{{/* Variables of the price of a clone. A price of 0 is a price, so `with` would not do. */}}
{{- define "shed.clonePrice" -}}
{{- $flags := dict "perAttempt" (list "SHED_CLONE_PRICE_PER_ATTEMPT" "clone_price=") "perSlotSecond" (list "SHED_CLONE_PRICE_PER_SLOT_SECOND" "slot_price=") }}
{{- range $key, $names := $flags }}
{{- $price := index $.Values.clonePrice $key }}
{{- if not (kindIs "invalid" $price) }}
{{- if contains (last $names) $.Values.policy }}
{{- fail (printf "clonePrice.%s: policy sets %q as well; remove one of them" $key (last $names)) }}
{{- end }}
{{- if not (hasPrefix "shed-prime" $.Values.policy) }}
{{- fail (printf "clonePrice.%s: only shed-prime has a price of clones, not %q; remove it" $key $.Values.policy) }}
{{- end }}
- name: {{ first $names }}
  value: {{ $price | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Not empty if an object is absent or of this release. Helm refuses a release with an object that another creator made,
such as an operator that was run without the chart.
*/}}
{{- define "shed.isOurs" -}}
{{- $live := lookup .apiVersion .kind .root.Release.Namespace .name | default dict }}
{{- $annotations := dig "metadata" "annotations" dict $live | default dict }}
{{- $isReleases := eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name }}
{{- if or (empty $live) (and $isReleases (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace)) }}true{{ end }}
{{- end }}
