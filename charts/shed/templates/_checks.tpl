{{/*
Values that contradict each other. The schema refuses what is wrong by itself;
each line here names the value and the fix.
*/}}
{{- define "shed.checks" -}}
{{- include "shed.checkPolicy" . }}
{{- include "shed.checkLabels" . }}
{{- include "shed.checkContexts" . }}
{{- include "shed.checkRollOut" . }}
{{- include "shed.checkLease" . }}
{{- include "shed.checkEnvironment" . }}
{{- include "shed.checkArguments" . }}
{{- include "shed.checkVolumes" . }}
{{- include "shed.checkNetworkPolicy" . }}
{{- include "shed.checkMonitors" . }}
{{- include "shed.checkOtherRelease" . }}
{{- end }}

{{/* The policies of the operator's registry. A test of src/operator/policy.rs compares them. */}}
{{- define "shed.policies" -}}
- hadoop-ns
- shed-prime
- shed-plus
- hadoop-s
- late
- mantri
- dolly
- hopper
- chronos-clone
- chronos-s-restart
- chronos-s-resume
- srquant
- laser
- sca
- ese
- dollymp
- shed
- s-resume-event
- edf-admission
- preemption
{{- end }}

{{- define "shed.checkPolicy" -}}
{{- $policies := include "shed.policies" . | fromYamlArray }}
{{- $name := regexFind "^[^{]*" .Values.policy }}
{{- if not (has $name $policies) }}
{{- fail (printf "policy: unknown policy %q; use one of %s, with parameters as in shed-prime{max_clones=3}" $name (join ", " $policies)) }}
{{- end }}
{{- end }}

{{/* Selectors and Helm rest on the chart's own labels. */}}
{{- define "shed.checkLabels" -}}
{{- $given := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels "metrics.service.labels" .Values.metrics.service.labels }}
{{- range $name, $labels := $given }}
{{- range $key, $_ := $labels }}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (hasPrefix "helm.sh/" $key) }}
{{- fail (printf "%s: the chart sets labels such as %s itself; use a key of your own, e.g. example.com/%s" $name $key (last (splitList "/" $key))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shed.checkContexts" -}}
{{- $contexts := dict "podSecurityContext" .Values.podSecurityContext "securityContext" .Values.securityContext "agent.securityContext" .Values.agent.securityContext }}
{{- range $name, $given := $contexts }}
{{- $context := $given | default dict }}
{{- if and $context.runAsNonRoot (eq (toString $context.runAsUser) "0") }}
{{- fail (printf "%s.runAsUser: 0 is root, but %s.runAsNonRoot is true; remove runAsUser" $name $name) }}
{{- end }}
{{- if and $context.privileged (eq (toString $context.allowPrivilegeEscalation) "false") }}
{{- fail (printf "%s.privileged: true contradicts allowPrivilegeEscalation: false; remove privileged, which shed does not need" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shed.checkRollOut" -}}
{{- $rolling := .Values.updateStrategy.rollingUpdate | default dict }}
{{- $none := list "0" "0%" }}
{{- if and (has (toString $rolling.maxSurge) $none) (has (toString $rolling.maxUnavailable) $none) }}
{{- fail "updateStrategy.rollingUpdate: maxSurge and maxUnavailable are both 0, so no pod could be replaced; set maxSurge to 1" }}
{{- end }}
{{- end }}

{{/* A duration of one unit, such as 8s, in milliseconds. */}}
{{- define "shed.milliseconds" -}}
{{- $factor := 1 }}
{{- if not (hasSuffix "ms" .) }}
{{- $factor = get (dict "s" 1000 "m" 60000) (trimAll "0123456789" .) }}
{{- end }}
{{- mul $factor (regexFind "^[0-9]+" . | int64) }}
{{- end }}

{{/* The operator would refuse them at its start. */}}
{{- define "shed.checkLease" -}}
{{- $lease := .Values.lease }}
{{- $duration := include "shed.milliseconds" $lease.duration | int64 }}
{{- $deadline := include "shed.milliseconds" $lease.renewDeadline | int64 }}
{{- $retry := include "shed.milliseconds" $lease.retryPeriod | int64 }}
{{- if gt $duration 3600000 }}
{{- fail (printf "lease.duration: %s is above 60m, the maximum; use e.g. 12s" $lease.duration) }}
{{- end }}
{{- if gt (add $deadline 1000) $duration }}
{{- fail (printf "lease.renewDeadline: %s is not at least 1s less than lease.duration (%s); lower it or raise lease.duration" $lease.renewDeadline $lease.duration) }}
{{- end }}
{{- if or (gt (mul 2 $retry) $deadline) (lt $retry 100) }}
{{- fail (printf "lease.retryPeriod: %s is not between 100ms and half of lease.renewDeadline (%s); use e.g. 2s" $lease.retryPeriod $lease.renewDeadline) }}
{{- end }}
{{- end }}

{{/* The value that sets a variable of the operator. */}}
{{- define "shed.variables" -}}
SHED_POLICY: policy
SHED_CLONE_PRICE_PER_ATTEMPT: clonePrice.perAttempt
SHED_CLONE_PRICE_PER_SLOT_SECOND: clonePrice.perSlotSecond
SHED_CLONE_BUDGET: cloneBudget
SHED_DELETION_COST: disruption.deletionCost
SHED_DO_NOT_DISRUPT: disruption.doNotDisrupt
SHED_EXPECTED_END: expectedEnds.annotate
SHED_KUEUE_SLACK_CLASSES: kueue.slackClasses
SHED_POLICY_FILES: policyFiles.configMap
SHED_ORDER: order
SHED_CAPACITY_SHARE: capacityShare
SHED_SURGE_MAX: surgeMax
SHED_PROGRESS_POLLS_PER_SECOND: progressPollsPerSecond
SHED_METRICS_JOBS: metrics.jobs
SHED_METRICS_SECURE: metrics.secure.enabled
SHED_METRICS_CERT_DIR: metrics.secure.certificateSecret
SHED_ADOPT_JOBS: adoptJobs
SHED_ASK_ADDRESS: askAddress
SHED_AGENT_IMAGE: agent.image
SHED_AGENT_PULL_POLICY: agent.pullPolicy
SHED_AGENT_PULL_SECRET: agent.pullSecret
SHED_AGENT_SECURITY_CONTEXT: agent.securityContext
SHED_SIGNING_KEY_ID: agent.keyId
SHED_CLONE_PRIORITY_CLASS: clonePriorityClass.name
SHED_LEASE_DURATION: lease.duration
SHED_LEASE_RENEW_DEADLINE: lease.renewDeadline
SHED_LEASE_RETRY_PERIOD: lease.retryPeriod
SHED_LOG_JSON: log.json
SHED_RECORD: record.enabled
SHED_RECORD_MAX_MIB: record.maxMiB
{{- end }}

{{/* Settings that follow from names and ports of other objects of the chart. */}}
{{- define "shed.fixedSettings" -}}
- ADOPT_JOBS
- CLONE_PRIORITY_CLASS
- HTTP_ADDRESS
- KUEUE_SLACK_CLASSES
- PROBE_ADDRESS
- LEASE_NAME
- LEASE_NAMESPACE
- SIGNING_SECRET
- STATE_CONFIG_MAP
{{- end }}

{{- define "shed.checkEnvironment" -}}
{{- $variables := include "shed.variables" . | fromYaml }}
{{- $fixed := include "shed.fixedSettings" . | fromYamlArray }}
{{- $names := list }}
{{- range .Values.extraEnv }}
{{- if has .name $names }}
{{- fail (printf "extraEnv: %s is set twice; remove one of them" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- if and (hasKey . "value") (hasKey . "valueFrom") }}
{{- fail (printf "extraEnv: %s has value and valueFrom; remove one of them" .name) }}
{{- end }}
{{- $value := index $variables .name }}
{{- if $value }}
{{- fail (printf "extraEnv: the chart sets %s; use the value %s" .name $value) }}
{{- end }}
{{- if has (trimPrefix "SHED_" .name) $fixed }}
{{- fail (printf "extraEnv: %s must fit the chart's roles and probes; remove it" .name) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shed.checkArguments" -}}
{{- $fixed := include "shed.fixedSettings" . | fromYamlArray }}
{{- range .Values.extraArgs }}
{{- $flag := first (splitList "=" .) }}
{{- if has (trimPrefix "--" $flag | replace "-" "_" | upper) $fixed }}
{{- fail (printf "extraArgs: %s must fit the chart's roles and probes; remove it" $flag) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shed.checkVolumes" -}}
{{- $names := list }}
{{- $paths := list }}
{{- if .Values.record.enabled }}
{{- $names = append $names "recording" }}
{{- $paths = append $paths "/recording" }}
{{- end }}
{{- if .Values.policyFiles.configMap }}
{{- $names = append $names "policy-files" }}
{{- $paths = append $paths "/policy" }}
{{- end }}
{{- if .Values.metrics.secure.certificateSecret }}
{{- $names = append $names "metrics-certificate" }}
{{- $paths = append $paths "/metrics-certificate" }}
{{- end }}
{{- range .Values.extraVolumes }}
{{- if has .name $names }}
{{- fail (printf "extraVolumes: there are two volumes %q; rename one of them" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- range .Values.extraVolumeMounts }}
{{- if not (has .name $names) }}
{{- fail (printf "extraVolumeMounts: there is no volume %q; add it to extraVolumes" .name) }}
{{- end }}
{{- if has .mountPath $paths }}
{{- fail (printf "extraVolumeMounts: two volumes have the mountPath %q; change one of them" .mountPath) }}
{{- end }}
{{- $paths = append $paths .mountPath }}
{{- end }}
{{- end }}

{{- define "shed.checkNetworkPolicy" -}}
{{- if and .Values.networkPolicy.attemptNamespaces (not .Values.networkPolicy.enabled) }}
{{- fail "networkPolicy.attemptNamespaces: has no effect while networkPolicy.enabled is false; set networkPolicy.enabled to true" }}
{{- end }}
{{- end }}

{{- define "shed.checkMonitors" -}}
{{- $metrics := .Values.metrics }}
{{- if and $metrics.serviceMonitor.enabled $metrics.podMonitor.enabled }}
{{- fail "metrics.podMonitor.enabled: metrics.serviceMonitor is enabled too, so each metric would be scraped twice; disable one of them" }}
{{- end }}
{{- if and $metrics.serviceMonitor.enabled (not $metrics.service.enabled) }}
{{- fail "metrics.serviceMonitor.enabled: needs metrics.service.enabled: true; enable it, or use metrics.podMonitor" }}
{{- end }}
{{- range $name := list "certificateSecret" "tokenSecret" "tlsConfig" }}
{{- if and (index $metrics.secure $name) (not $metrics.secure.enabled) }}
{{- fail (printf "metrics.secure.%s: has no effect while metrics.secure.enabled is false; set metrics.secure.enabled to true" $name) }}
{{- end }}
{{- end }}
{{- if and $metrics.podMonitor.enabled $metrics.secure.enabled (not $metrics.secure.tokenSecret) }}
{{- fail "metrics.podMonitor.enabled: a PodMonitor cannot use the Prometheus's own token, which metrics.secure needs; set metrics.secure.tokenSecret, or use metrics.serviceMonitor" }}
{{- end }}
{{- $seen := or $metrics.assumePrometheusOperator (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") }}
{{- range $name := list "serviceMonitor" "podMonitor" "prometheusRule" }}
{{- if and (index $metrics $name).enabled (not $seen) }}
{{- fail (printf "metrics.%s.enabled: the cluster does not serve monitoring.coreos.com/v1; install the Prometheus Operator first, or, where Helm has no cluster, set metrics.assumePrometheusOperator to true" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Two operators would run every job twice. An installation is found by its ClusterRoleBinding, also one without Helm. One
of the same name that no release has is left to Helm, which refuses it or takes it over (--take-ownership).
*/}}
{{- define "shed.checkOtherRelease" -}}
{{- $own := printf "%s/%s" .Release.Namespace .Release.Name }}
{{- $fullname := include "shed.fullname" . }}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "").items }}
{{- $annotations := dig "annotations" dict .metadata | default dict }}
{{- $isInstallation := and (eq (dig "labels" "app.kubernetes.io/part-of" "" .metadata) "shed") (not (hasKey $annotations "helm.sh/hook")) }}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" }}
{{- $name := get $annotations "meta.helm.sh/release-name" }}
{{- if and $isInstallation $name (ne (printf "%s/%s" $namespace $name) $own) }}
{{- fail (printf "shed is installed already, as release %s in namespace %s, and two operators would run every job twice; upgrade that release, or uninstall it first (kubectl delete clusterrolebinding %s, if only that is left)" $name $namespace .metadata.name) }}
{{- else if and $isInstallation (not $name) (ne .metadata.name $fullname) }}
{{- fail (printf "shed is installed already, without Helm (ClusterRoleBinding %s), and two operators would run every job twice; uninstall it first" .metadata.name) }}
{{- end }}
{{- end }}
{{- end }}
