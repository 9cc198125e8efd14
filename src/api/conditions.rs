//! Condition types and reasons: the only ones that shed writes.

/// batch/v1: the fate is known to be success, pods may still be ending.
pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// batch/v1: every task has a winner and no pod is left running.
pub const COMPLETE: &str = "Complete";
/// batch/v1: the fate is known to be failure, pods may still be ending.
pub const FAILURE_TARGET: &str = "FailureTarget";
/// batch/v1: the job failed and no pod is left running.
pub const FAILED: &str = "Failed";
/// batch/v1: `spec.suspend` is in effect.
pub const SUSPENDED: &str = "Suspended";
/// The job will probably miss its deadline.
pub const DEADLINE_AT_RISK: &str = "DeadlineAtRisk";
/// The job could reach its target PoCD by its deadline with the capacity of the moment.
pub const DEADLINE_FEASIBLE: &str = "DeadlineFeasible";
/// The deadline passed before the job was complete.
pub const DEADLINE_MISSED: &str = "DeadlineMissed";
/// Tasks that are to run have no attempt, and have had none for a while.
pub const TASKS_WAITING: &str = "TasksWaiting";
/// Attempts can't be created or can't start.
pub const ATTEMPTS_BLOCKED: &str = "AttemptsBlocked";
/// Running attempts don't answer when asked for progress.
pub const PROGRESS_UNREACHABLE: &str = "ProgressUnreachable";
/// Clones can't mount what their original holds on another node.
pub const VOLUME_NOT_SHARED: &str = "VolumeNotShared";
/// An attempt should be gone and is not known to be; another attempt, or the job's end, waits for it.
pub const END_UNCONFIRMED: &str = "EndUnconfirmed";
/// Some checkpoints are not durable.
pub const CHECKPOINTS_LIMITED: &str = "CheckpointsLimited";
/// The job is not reconciled for a while: its last reconcile panicked, overran its time or did not
/// end.
pub const QUARANTINED: &str = "Quarantined";
/// On a batch/v1 Job: shed can't run it as its annotations say.
pub const ADOPTION_REFUSED: &str = "AdoptionRefused";

/// Reasons, grouped by the condition that carries them.
pub mod reason {
    /// `SuccessCriteriaMet`, `Complete`.
    pub const COMPLETIONS_REACHED: &str = "CompletionsReached";
    /// `SuccessCriteriaMet`, `Complete`: enough tasks have a winner.
    pub const SUCCESS_POLICY: &str = "SuccessPolicy";
    /// `FailureTarget`, `Failed`: the deadline passed and `onMiss` is `Fail`.
    pub const DEADLINE_MISSED: &str = "DeadlineMissed";
    /// `FailureTarget`, `Failed`: `activeDeadlineSeconds` passed, as in batch/v1.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// `FailureTarget`, `Failed`: more tasks failed for good than `maxFailedIndexes` allows.
    pub const MAX_FAILED_INDEXES: &str = "MaxFailedIndexesExceeded";
    /// `FailureTarget`, `Failed`: all tasks together failed too often.
    pub const BACKOFF_LIMIT: &str = "BackoffLimitExceeded";
    /// `FailureTarget`, `Failed`: an attempt failed in a way that fails the job.
    pub const POD_FAILURE_POLICY: &str = "PodFailurePolicy";
    /// `FailureTarget`, `Failed`: the deadline had passed when the job was submitted.
    pub const DEADLINE_IN_PAST: &str = "DeadlineInPast";
    /// `FailureTarget`, `Failed`: tasks used up their back-off limit.
    pub const FAILED_INDEXES: &str = "FailedIndexes";
    /// `FailureTarget`, `Failed`: the specification can't be carried out.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// `FailureTarget`, `Failed` turned back: the specification was mended.
    pub const SPEC_MENDED: &str = "SpecMended";
    /// `FailureTarget`, `DeadlineMissed` turned back: the last task had finished before the deadline
    /// after all.
    pub const FINISHED_IN_TIME: &str = "FinishedInTime";
    /// `Suspended` is true.
    pub const JOB_SUSPENDED: &str = "JobSuspended";
    /// `Suspended` is false again.
    pub const JOB_RESUMED: &str = "JobResumed";
    /// `DeadlineAtRisk`: tasks are expected to end after the deadline.
    pub const STRAGGLER: &str = "Straggler";
    /// `DeadlineAtRisk`: the deadline may have passed, and nobody can tell.
    pub const CLOCK_UNCERTAIN: &str = "ClockUncertain";
    /// `DeadlineAtRisk`, `TasksWaiting`: tasks wait for capacity.
    pub const CAPACITY_SHORT: &str = "CapacityShort";
    /// `DeadlineAtRisk`, `TasksWaiting`: tasks wait while capacity is kept for jobs that are likely to come.
    pub const CAPACITY_KEPT: &str = "CapacityKept";
    /// `TasksWaiting`: a task that failed is not tried again yet.
    pub const BACK_OFF: &str = "BackOff";
    /// `TasksWaiting`: a task's last attempt has to be gone first.
    pub const ATTEMPT_ENDING: &str = "AttemptEnding";
    /// `TasksWaiting`: as many tasks run as may.
    pub const PARALLELISM_REACHED: &str = "ParallelismReached";
    /// `TasksWaiting`, `CheckpointsLimited`: the job's object has no room for more.
    pub const OBJECT_SIZE: &str = "ObjectSize";
    /// `CheckpointsLimited` is false.
    pub const ALL_DURABLE: &str = "AllDurable";
    /// `TasksWaiting` is false.
    pub const TASKS_RUN: &str = "TasksRun";
    /// `DeadlineAtRisk` is false: PoCD is high enough.
    pub const ON_TRACK: &str = "OnTrack";
    /// `DeadlineFeasible`: PoCD is as high as it is to be.
    pub const TARGET_REACHED: &str = "TargetReached";
    /// `DeadlineFeasible` is false: a later deadline would do.
    pub const DEADLINE_TOO_EARLY: &str = "DeadlineTooEarly";
    /// `DeadlineFeasible` is false: no node could hold an attempt.
    pub const NO_ROOM: &str = "NoRoom";
    /// `DeadlineFeasible` is unknown: nothing is known of how long tasks take.
    pub const TIMES_UNKNOWN: &str = "TimesUnknown";
    /// `DeadlineFeasible` is unknown: the deadline counts from a start that has not been.
    pub const CLOCK_NOT_STARTED: &str = "ClockNotStarted";
    /// `DeadlineMissed`: the deadline passed first.
    pub const DEADLINE_PASSED: &str = "DeadlinePassed";
    /// `DeadlineMissed` is false: the deadline was moved to later.
    pub const DEADLINE_MOVED: &str = "DeadlineMoved";
    /// `DeadlineMissed`: the job failed before the deadline.
    pub const FAILED_BEFORE: &str = "FailedBefore";
    /// `AttemptsBlocked`: a ResourceQuota refuses the pod.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// `AttemptsBlocked`: Pod Security or another admission plugin refuses the pod.
    pub const POD_FORBIDDEN: &str = "PodForbidden";
    /// `AttemptsBlocked`: the apiserver finds the pod invalid.
    pub const POD_INVALID: &str = "PodInvalid";
    /// `AttemptsBlocked`: another failure to create the pod.
    pub const POD_CREATION_FAILED: &str = "PodCreationFailed";
    /// `AttemptsBlocked`: no node of the cluster could hold an attempt, even when empty.
    pub const NO_MATCHING_NODE: &str = "NoMatchingNode";
    /// `AttemptsBlocked`: no scheduler places the pods.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// `AttemptsBlocked`: the image can't be pulled.
    pub const IMAGE_PULL_FAILED: &str = "ImagePullFailed";
    /// `AttemptsBlocked`: the container can't be made from its configuration.
    pub const CONTAINER_CONFIG_ERROR: &str = "ContainerConfigError";
    /// `AttemptsBlocked`: a sidecar or init container ends again and again before the task.
    pub const INIT_CONTAINER_CRASHES: &str = "InitContainerCrashes";
    /// `AttemptsBlocked` is false: attempts start again.
    pub const ATTEMPTS_START: &str = "AttemptsStart";
    /// `ProgressUnreachable`: no answer from running attempts.
    pub const NO_ANSWER: &str = "NoAnswer";
    /// `ProgressUnreachable` is false.
    pub const ANSWERS: &str = "Answers";
    /// `AdoptionRefused`: an annotation can't be read or contradicts another.
    pub const INVALID_ANNOTATION: &str = "InvalidAnnotation";
    /// `AdoptionRefused`: the book of a Job that had begun was deleted.
    pub const BOOK_LOST: &str = "BookLost";
    /// `AdoptionRefused`: the `DeadlineJob` that holds the Job's ledger can't be created.
    pub const COMPANION_NOT_CREATED: &str = "CompanionNotCreated";
    /// `AdoptionRefused` is false: what was wrong has been mended.
    pub const ADOPTED: &str = "Adopted";
    /// `VolumeNotShared`: a claim is ReadWriteOnce or ReadWriteOncePod.
    pub const ONE_NODE_AT_A_TIME: &str = "OneNodeAtATime";
    /// `VolumeNotShared` is false.
    pub const VOLUMES_SHARED: &str = "VolumesShared";
    /// `EndUnconfirmed`: its node is not Ready, or has no object.
    pub const NODE_SILENT: &str = "NodeSilent";
    /// `EndUnconfirmed`: its node is Ready, and the kubelet there has not reported its end.
    pub const KUBELET_SILENT: &str = "KubeletSilent";
    /// `EndUnconfirmed` is false.
    pub const ALL_CONFIRMED: &str = "AllConfirmed";
    /// `Quarantined`: the last reconcile panicked.
    pub const RECONCILE_PANICKED: &str = "ReconcilePanicked";
    /// `Quarantined`: the last reconcile was cut off, because it overran its time.
    pub const RECONCILE_OVERRAN: &str = "ReconcileOverran";
    /// `Quarantined`: a step of the last reconcile did not end, so the operator's process was ended.
    pub const RECONCILE_STUCK: &str = "ReconcileStuck";
    /// `Quarantined` is false: a reconcile went well.
    pub const RECONCILED: &str = "Reconciled";
}
