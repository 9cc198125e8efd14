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

{{- define "shed.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
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
