//! Labels, annotations, finalizers, environment variables and paths that shed uses.

/// API group.
pub const GROUP: &str = "shed.dev";
/// Taken off an attempt pod only after its end is durably counted.
pub const ATTEMPT_FINALIZER: &str = "shed.dev/attempt-tracking";
/// The same on a pod of a batch/v1 Job, under the name that such pods always have it.
pub const JOB_TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Label: uid of the job that an attempt pod belongs to.
pub const LABEL_JOB_UID: &str = "shed.dev/job-uid";
/// Label: name of the job (cut to 63 characters).
pub const LABEL_JOB_NAME: &str = "shed.dev/job-name";
/// Label of attempts of a batch/v1 Job that is not Indexed: the task, as the ledger numbers it.
pub const LABEL_TASK: &str = "shed.dev/task";
/// Label: number of the attempt within its task.
pub const LABEL_ATTEMPT: &str = "shed.dev/attempt";
/// Label of attempts with `resume: Range`: the index of the segment in the ledger.
pub const LABEL_SEGMENT: &str = "shed.dev/segment";
/// Label: `original`, `clone` or `retry`.
pub const LABEL_KIND: &str = "shed.dev/attempt-kind";
/// Labels that identify the attempt of a pod. shed sets them itself, so a template's values have no
/// effect.
pub const RESERVED: [&str; 6] = [
    LABEL_JOB_UID,
    LABEL_JOB_NAME,
    LABEL_TASK,
    LABEL_ATTEMPT,
    LABEL_KIND,
    LABEL_SEGMENT,
];
/// Label of a Namespace: the weight of its jobs in the division of capacity.
pub const LABEL_SHARE: &str = "shed.dev/share";
/// Label of a Namespace: what shed does with its batch/v1 Jobs without `spec.managedBy`.
pub const LABEL_JOBS: &str = "shed.dev/jobs";
/// The value of [`LABEL_JOBS`] by which the chart's policy hands Jobs with a deadline to shed.
pub const JOBS_RUN: &str = "run";
/// The value of [`LABEL_JOBS`] by which shed only watches these Jobs.
pub const JOBS_WATCH: &str = "watch";
/// Annotation of a Namespace, and of a batch/v1 Job: the limit of clones as a share of a job's own slot-seconds.
pub const ANNOTATION_CLONE_BUDGET: &str = "shed.dev/clone-budget";
/// Annotation of a Namespace: how many of its jobs may run at a time.
pub const ANNOTATION_ACTIVE_JOBS_MAX: &str = "shed.dev/max-active-jobs";
/// Annotation of a Namespace: `stop` stops new clones.
pub const ANNOTATION_CLONES: &str = "shed.dev/clones";
/// The value of [`ANNOTATION_CLONES`] that has an effect.
pub const CLONES_STOP: &str = "stop";
/// Reason of the event about a Namespace whose annotation has an unknown value.
pub const UNKNOWN_VALUE: &str = "UnknownAnnotationValue";
/// Reason of the event about a Namespace whose label has an unknown value.
pub const UNKNOWN_LABEL_VALUE: &str = "UnknownLabelValue";
/// Reason of the event about a batch/v1 Job that shed has begun and no longer runs.
pub const NOT_ADOPTED: &str = "NotAdopted";
/// Reason of the event about a pod that carries a job's label and is no attempt of it.
pub const POD_DISOWNED: &str = "PodDisowned";
/// Reason of the event that names reserved labels and annotations of a template.
pub const RESERVED_LABEL: &str = "ReservedLabel";
/// Reason of the event that names annotations of shed where they have no effect.
pub const MISPLACED_ANNOTATION: &str = "MisplacedAnnotation";
/// Label of a job with its class. Its attempt times are estimated from earlier jobs of the
/// namespace with the same class.
pub const LABEL_CLASS: &str = "shed.dev/class";
/// Annotation of a job: the run of a workflow that it is a stage of.
pub const ANNOTATION_WORKFLOW: &str = "shed.dev/workflow";
/// Annotation of a job: when that run must be complete.
pub const ANNOTATION_WORKFLOW_DEADLINE: &str = "shed.dev/workflow-deadline";
/// Annotation of a job: the class of runs to which the run belongs.
pub const ANNOTATION_WORKFLOW_CLASS: &str = "shed.dev/workflow-class";
/// Annotation of a job: when the run began, if that was before its first job.
pub const ANNOTATION_WORKFLOW_START: &str = "shed.dev/workflow-start";
/// Annotation of a job: whether its stage is the last one of the run.
pub const ANNOTATION_WORKFLOW_LAST: &str = "shed.dev/workflow-last";
/// The annotations of a stage of a workflow.
pub const WORKFLOW_ANNOTATIONS: [&str; 5] = [
    ANNOTATION_WORKFLOW,
    ANNOTATION_WORKFLOW_DEADLINE,
    ANNOTATION_WORKFLOW_CLASS,
    ANNOTATION_WORKFLOW_START,
    ANNOTATION_WORKFLOW_LAST,
];
/// The most bytes of a value of these annotations.
pub const WORKFLOW_VALUE_MAX: usize = 253;
/// Label and annotation of batch/v1: the task's index.
pub const LABEL_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation of batch/v1: how often the task had failed when the pod was made.
pub const ANNOTATION_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation of an attempt pod: when the attempt is expected to end, as RFC 3339.
pub const ANNOTATION_EXPECTED_END: &str = "shed.dev/expected-end";
/// Annotation of Kubernetes on a pod: what a disruption of it costs, compared with other pods.
pub const ANNOTATION_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation by which Karpenter leaves a pod's node alone.
pub const ANNOTATION_DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Annotation by which the cluster autoscaler leaves a pod's node alone.
pub const ANNOTATION_SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// Label by which Velero leaves an object out of its backups.
pub const LABEL_NO_BACKUP: &str = "velero.io/exclude-from-backup";
/// Label that Velero gives every object that it restores: the restore's name.
pub const LABEL_RESTORED: &str = "velero.io/restore-name";
/// Label of batch/v1: the job's name.
pub const LABEL_BATCH_JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Environment variable of batch/v1: the task's index.
pub const ENV_INDEX: &str = "JOB_COMPLETION_INDEX";
/// How many tasks the job has.
pub const ENV_COMPLETIONS: &str = "SHED_COMPLETIONS";
/// The attempt's number within its task.
pub const ENV_ATTEMPT: &str = "SHED_ATTEMPT";
/// Identity of the attempt: unique over all jobs and attempts.
pub const ENV_ATTEMPT_ID: &str = "SHED_ATTEMPT_ID";
/// The deadline as RFC 3339.
pub const ENV_DEADLINE: &str = "SHED_DEADLINE";
/// Where the task writes its progress.
pub const ENV_PROGRESS_FILE: &str = "SHED_PROGRESS_FILE";
/// Where the task reads the point to resume from; absent file: from the beginning.
pub const ENV_RESUME_FILE: &str = "SHED_RESUME_FILE";

/// With `resume: Range`: the first unit of the attempt's segment.
pub const ENV_RANGE_START: &str = "SHED_RANGE_START";
/// With `resume: Range`: the unit behind its last; absent: the end of the task's input.
pub const ENV_RANGE_END: &str = "SHED_RANGE_END";
/// With `resume: Range`: file that contains an earlier end of the attempt's segment, once there is
/// one.
pub const ENV_STOP_FILE: &str = "SHED_STOP_FILE";
/// With `idempotency: Fenced`: the program that requests a grant before publishing.
pub const ENV_BIN: &str = "SHED_BIN";
/// With `idempotency: Fenced`: the URL for programs that request a grant themselves.
pub const ENV_COMMIT_URL: &str = "SHED_COMMIT_URL";

/// Name of the volume that the task and the agent share.
pub const VOLUME: &str = "shed";
/// Where the volume is mounted.
pub const VOLUME_PATH: &str = "/run/shed";
/// The progress file on that volume.
pub const PROGRESS_PATH: &str = "/run/shed/progress";
/// The resume file on that volume.
pub const RESUME_PATH: &str = "/run/shed/resume";
/// The stop file on that volume.
pub const STOP_PATH: &str = "/run/shed/stop";
/// shed's own program on that volume.
pub const BIN_PATH: &str = "/run/shed/shed";
/// Name of the sidecar.
pub const AGENT_CONTAINER: &str = "shed-agent";
/// Port on which the agent serves progress.
pub const AGENT_PORT: u16 = 9247;
/// Port on which the agent answers the startup probe.
pub const AGENT_HEALTH_PORT: u16 = 9249;
