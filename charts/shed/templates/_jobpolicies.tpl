{{/* The label of a Namespace that says what shed does with its Jobs without managedBy: run or watch. */}}
{{- define "shed.jobsLabel" -}}shed.dev/jobs{{- end }}

{{/*
The version of the API that has MutatingAdmissionPolicy; empty without one. Helm without a cluster lists the APIs of its
own Kubernetes, so the minor counts too.
*/}}
{{- define "shed.mutatingPolicies" -}}
{{- range $version, $since := dict "v1" ">=1.36.0-0" "v1beta1" ">=1.34.0-0" }}
{{- $kind := printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" $version }}
{{- if and ($.Capabilities.APIVersions.Has $kind) (semverCompare $since $.Capabilities.KubeVersion.Version) }}{{ $version }} {{ end }}
{{- end }}
{{- end }}

{{- define "shed.setsManagedBy" -}}
{{- if and .Values.jobPolicies.setManagedBy (ne .Values.adoptJobs "none") }}
{{- splitList " " (include "shed.mutatingPolicies" .) | first }}
{{- end }}
{{- end }}

{{/*
The variables of a policy on Jobs. `faults` are the words about annotations that shed would refuse, as far as CEL can
see them; the operator's own check is src/adopt/annotations.rs. The argument is the expression of the Job.
*/}}
{{- define "shed.jobVariables" -}}
- name: annotations
  expression: >-
    {{ . }}.?metadata.?annotations.orValue({})
- name: keys
  expression: variables.annotations.map(key, key.startsWith('shed.dev/'), key)
- name: known
  expression: >-
    ['deadline', 'clock-start', 'on-miss', 'idempotency', 'progress', 'resume', 'preemption', 'speculation',
    'max-clones-per-task', 'clone-budget', 'target-pocd', 'expected-task-duration', 'workflow', 'workflow-deadline',
    'workflow-class', 'workflow-start', 'workflow-last'].map(name, 'shed.dev/' + name)
- name: values
  expression: >-
    variables.known.map(key, key in variables.annotations ? variables.annotations[key].trim() : '')
- name: deadline
  expression: variables.values[0]
- name: duration
  expression: "'^([0-9]+([.][0-9]+)?(ms|s|m|h))+$'"
- name: number
  expression: "'^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$'"
- name: instant
  expression: "'^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})$'"
- name: timeOfDay
  expression: "'^([01][0-9]|2[0-3]):[0-5][0-9][ \\t]+[A-Za-z][A-Za-z0-9_+/-]*$'"
- name: isDuration
  expression: variables.deadline.matches(variables.duration) && duration(variables.deadline) > duration('0s')
- name: isDeadline
  expression: >-
    variables.isDuration ||
    variables.deadline.matches(variables.instant) || variables.deadline.matches(variables.timeOfDay) ||
    variables.deadline.matches('^history *[(] *(p50|p90|p95|p99|max) *[)]( *[*] *[0-9]{1,3}([.][0-9]{1,3})?)?$')
- name: runDeadline
  expression: variables.values[13]
- name: workflowKeys
  expression: variables.keys.filter(key, key.startsWith('shed.dev/workflow'))
- name: name
  expression: "'^[A-Za-z0-9_.:+-]{1,253}$'"
- name: words
  expression: >-
    {'shed.dev/clock-start': ['Creation', 'Start'], 'shed.dev/on-miss': ['Continue', 'Fail'],
    'shed.dev/idempotency': ['Safe', 'Fenced', 'None'], 'shed.dev/resume': ['None', 'Checkpoint', 'Range'],
    'shed.dev/workflow-last': ['true', 'false'],
    'shed.dev/preemption': ['Never', 'WhenCheckpointed'], 'shed.dev/speculation': ['Enabled', 'Observe', 'Disabled']}
- name: faults
  expression: >-
    variables.keys.filter(key, !(key in variables.known)).map(key, key + ': is unknown: use one of ' + variables.known.join(', '))
    + variables.keys.filter(key, key in variables.words && !(variables.annotations[key].trim() in variables.words[key]))
    .map(key, key + ': invalid value `' + variables.annotations[key] + '`: use ' + variables.words[key].join(' or '))
    + ('shed.dev/deadline' in variables.annotations && !variables.isDeadline
    ? ['shed.dev/deadline: invalid deadline `' + variables.deadline + '`: use a value such as 90s, 10m, 1h30m, 2030-01-31T08:00:00Z, `06:00 Europe/Zurich` or `history(p95)*1.5`'] : [])
    + (variables.values[1] != '' && !variables.isDuration ? ['shed.dev/clock-start: needs a duration in shed.dev/deadline'] : [])
    + (variables.values[3] == 'Fenced' && !variables.values[4].contains('file') ? ['shed.dev/idempotency: Fenced needs shed.dev/progress: file'] : [])
    + ('shed.dev/progress' in variables.annotations && variables.values[4] != 'file'
    && !variables.values[4].matches('(file|httpGet|metric)[^a-zA-Z]*:') ? ['shed.dev/progress: invalid value `' + variables.values[4] + '`: use `file`, or a value such as `{httpGet: {port: 8080, path: /progress}}`'] : [])
    + (variables.values[5] == 'Checkpoint' && variables.values[4] == '' ? ['shed.dev/resume: Checkpoint needs shed.dev/progress'] : [])
    + (variables.values[5] == 'Range' && (!variables.values[4].contains('file') || variables.values[3] != 'Safe')
    ? ['shed.dev/resume: Range needs shed.dev/progress: file and shed.dev/idempotency: Safe'] : [])
    + (variables.values[6] == 'WhenCheckpointed' && variables.values[5] != 'Checkpoint' ? ['shed.dev/preemption: WhenCheckpointed needs shed.dev/resume: Checkpoint'] : [])
    + (variables.values[7] in ['Enabled', 'Observe'] && (variables.deadline + variables.runDeadline == '' || !(variables.values[3] in ['Safe', 'Fenced']))
    ? ['shed.dev/speculation: clones need shed.dev/deadline or shed.dev/workflow-deadline, and shed.dev/idempotency: Safe or Fenced'] : [])
    + ('shed.dev/max-clones-per-task' in variables.annotations && !variables.values[8].matches('^[+]?0*(1?[0-9]|20)$')
    ? ['shed.dev/max-clones-per-task: invalid value `' + variables.values[8] + '`: use a number from 0 to 20'] : [])
    + ('shed.dev/clone-budget' in variables.annotations && !(variables.values[9].matches(variables.number) && double(variables.values[9]) <= 20.0)
    ? ['shed.dev/clone-budget: invalid value `' + variables.values[9] + '`: use a share from 0 to 20, such as 0.2'] : [])
    + ('shed.dev/target-pocd' in variables.annotations
    && !(variables.values[10].matches(variables.number) && double(variables.values[10]) > 0.0 && double(variables.values[10]) <= 1.0)
    ? ['shed.dev/target-pocd: invalid probability `' + variables.values[10] + '`: use a value such as 0.95'] : [])
    + ('shed.dev/expected-task-duration' in variables.annotations
    && !variables.values[11].matches(variables.duration) && !variables.values[11].matches('p50[^a-zA-Z]*:')
    ? ['shed.dev/expected-task-duration: invalid value `' + variables.values[11] + '`: use a duration such as 10m, or quantiles such as `{p50: 10m, p90: 15m}`'] : [])
    + (size(variables.workflowKeys) > 0 && !('shed.dev/workflow' in variables.annotations)
    ? [variables.workflowKeys[0] + ': needs shed.dev/workflow: add it with the name of the run'] : [])
    + ['shed.dev/workflow', 'shed.dev/workflow-class'].filter(key, key in variables.annotations && !variables.annotations[key].trim().matches(variables.name))
    .map(key, key + ': invalid name `' + variables.annotations[key] + '`: use 1 to 253 letters, digits and `-_.:+`')
    + ('shed.dev/workflow-deadline' in variables.annotations && !variables.runDeadline.matches(variables.instant) && !variables.runDeadline.matches(variables.timeOfDay)
    && !(variables.runDeadline.matches(variables.duration) && duration(variables.runDeadline) > duration('0s'))
    ? ['shed.dev/workflow-deadline: invalid deadline `' + variables.runDeadline + '`: use a value such as 90s, 10m, 1h30m, 2030-01-31T08:00:00Z or `06:00 Europe/Zurich`'] : [])
    + (variables.deadline.startsWith('history') && variables.runDeadline != ''
    ? ['shed.dev/deadline: a deadline from history does not work with shed.dev/workflow-deadline: remove one of them'] : [])
    + ('shed.dev/workflow-start' in variables.annotations && !variables.values[15].matches(variables.instant)
    ? ['shed.dev/workflow-start: invalid value `' + variables.values[15] + '`: use an instant such as 2030-01-31T08:00:00Z'] : [])
{{- end }}

{{/* Who runs the Job, as far as its template says: words about a manager that does not fit its annotations. */}}
{{- define "shed.managerWords" -}}
{{- $sets := include "shed.setsManagedBy" .root }}
{{- $label := include "shed.jobsLabel" . }}
- name: misplaced
  expression: >-
    {{ .job }}.?spec.?template.?metadata.?annotations.orValue({}).map(key, key in variables.known && !(key in variables.annotations), key)
- name: manager
  expression: {{ .job }}.?spec.?managedBy.orValue('')
- name: chosen
  expression: namespaceObject.?metadata.?labels[?'{{ $label }}'].orValue('')
- name: managers
  expression: >-
    size(variables.keys) == 0 || variables.manager == 'shed.dev/deadline-controller'
    {{- if eq .root.Values.adoptJobs "all" }} || variables.manager in ['', 'kubernetes.io/job-controller']{{ end }} ? [] :
    !(variables.manager in ['', 'kubernetes.io/job-controller']) ? ['spec.managedBy: `' + variables.manager + '` runs this Job, so annotations of shed have no effect']
    : !('shed.dev/deadline' in variables.annotations || 'shed.dev/workflow-deadline' in variables.annotations) ? []
    : variables.chosen == 'watch' ? []
    {{- if $sets }}
    : variables.manager == '' && variables.chosen == 'run' ? []
    : ['shed.dev/deadline has no effect without spec.managedBy: shed.dev/deadline-controller. Add it, or ask an admin for the label {{ $label }}: run, or watch, on the namespace']
    {{- else }}
    : ['shed.dev/deadline has no effect without spec.managedBy: shed.dev/deadline-controller. Add it, or ask an admin for the label {{ $label }}: watch on the namespace']
    {{- end }}
{{- end }}

{{/* The variables of the policy on Namespaces: `faults` are the words about values that shed does not use as they are. */}}
{{- define "shed.namespaceVariables" -}}
{{- $jobs := include "shed.jobsLabel" . }}
- name: labels
  expression: object.metadata.?labels.orValue({})
- name: annotations
  expression: object.metadata.?annotations.orValue({})
- name: number
  expression: "'^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$'"
- name: faults
  expression: >-
    variables.labels.map(key, key.startsWith('shed.dev/') && !(key in ['{{ $jobs }}', 'shed.dev/share']),
    key + ': is unknown as a label of a Namespace: use {{ $jobs }} or shed.dev/share')
    + variables.annotations.map(key,
    key.startsWith('shed.dev/') && !(key in ['shed.dev/clones', 'shed.dev/clone-budget', 'shed.dev/max-active-jobs']),
    key + ': is unknown as an annotation of a Namespace: use shed.dev/clones, shed.dev/clone-budget or shed.dev/max-active-jobs')
    + ('{{ $jobs }}' in variables.labels && !(variables.labels['{{ $jobs }}'] in ['run', 'watch'])
    ? ['{{ $jobs }}: unknown value `' + variables.labels['{{ $jobs }}'] + '`: use run or watch'] : [])
    + ('shed.dev/share' in variables.labels && !(variables.labels['shed.dev/share'].matches(variables.number)
    && double(variables.labels['shed.dev/share']) >= 0.001 && double(variables.labels['shed.dev/share']) <= 1000.0)
    ? ['shed.dev/share: invalid value `' + variables.labels['shed.dev/share'] + '`: use a number from 0.001 to 1000'] : [])
    + ('shed.dev/clones' in variables.annotations && variables.annotations['shed.dev/clones'] != 'stop'
    ? ['shed.dev/clones: unknown value `' + variables.annotations['shed.dev/clones'] + '`: use stop, or remove the annotation'] : [])
    + ('shed.dev/clone-budget' in variables.annotations && !(variables.annotations['shed.dev/clone-budget'].matches(variables.number)
    && double(variables.annotations['shed.dev/clone-budget']) <= 20.0)
    ? ['shed.dev/clone-budget: invalid value `' + variables.annotations['shed.dev/clone-budget'] + '`: use a share from 0 to 20, such as 0.2'] : [])
    + ('shed.dev/max-active-jobs' in variables.annotations
    && !variables.annotations['shed.dev/max-active-jobs'].matches('^[+]?0*([1-9][0-9]{0,5}|1000000)$')
    ? ['shed.dev/max-active-jobs: invalid value `' + variables.annotations['shed.dev/max-active-jobs'] + '`: use a whole number from 1, such as 20'] : [])
{{- end }}
