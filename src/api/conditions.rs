//! Condition types and reasons: the only ones that shed writes.

use crate::api::DeadlineJobStatus;

/// batch/v1: the outcome is known to be success; pods may still be terminating.
pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// batch/v1: every task has a winner and no pod is running.
pub const COMPLETE: &str = "Complete";
/// batch/v1: the outcome is known to be failure; pods may still be terminating.
pub const FAILURE_TARGET: &str = "FailureTarget";
/// batch/v1: the job failed and no pod is running.
pub const FAILED: &str = "Failed";
/// batch/v1: `spec.suspend` is in effect.
pub const SUSPENDED: &str = "Suspended";
/// The job will probably miss its deadline.
pub const DEADLINE_AT_RISK: &str = "DeadlineAtRisk";
/// The job can reach its target PoCD by its deadline with the current capacity.
pub const DEADLINE_FEASIBLE: &str = "DeadlineFeasible";
/// The job runs without a deadline, because its class has too few completion times.
pub const DEADLINE_UNKNOWN: &str = "DeadlineUnknown";
/// The deadline passed before the job was complete.
pub const DEADLINE_MISSED: &str = "DeadlineMissed";
/// Runnable tasks have had no attempt, or one behind a scheduling gate, for at least 10 s.
pub const TASKS_PENDING: &str = "TasksPending";
/// shed cannot create attempts, or they cannot start.
pub const ATTEMPTS_BLOCKED: &str = "AttemptsBlocked";
/// Running attempts do not respond to progress polls.
pub const PROGRESS_UNREACHABLE: &str = "ProgressUnreachable";
/// Clones cannot mount a volume that their original holds on another node.
pub const VOLUME_NOT_SHARED: &str = "VolumeNotShared";
/// An attempt's termination is not confirmed; another attempt, or the job's completion, waits for it.
pub const TERMINATION_UNCONFIRMED: &str = "TerminationUnconfirmed";
/// Some checkpoints are not durable.
pub const CHECKPOINTS_NOT_DURABLE: &str = "CheckpointsNotDurable";
/// An administrator stopped new clones with an annotation of a Namespace.
pub const CLONES_STOPPED: &str = "ClonesStopped";
/// shed pauses the job's reconciles because the last one panicked, timed out or got stuck.
pub const QUARANTINED: &str = "Quarantined";
/// An edit made the specification of a job that has begun invalid. shed continues without the edit.
pub const SPEC_INVALID: &str = "SpecInvalid";
/// On a batch/v1 Job: shed cannot run it as its annotations require.
pub const ADOPTION_REFUSED: &str = "AdoptionRefused";

impl DeadlineJobStatus {
    /// Whether a condition is true.
    pub fn is_true(&self, type_: &str) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|condition| condition.type_ == type_ && condition.status == "True")
    }
}

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
    /// `FailureTarget`, `Failed`: the tasks exceeded the job's back-off limit.
    pub const BACKOFF_LIMIT: &str = "BackoffLimitExceeded";
    /// `FailureTarget`, `Failed`: a rule of `podFailurePolicy` failed the job.
    pub const POD_FAILURE_POLICY: &str = "PodFailurePolicy";
    /// `FailureTarget`, `Failed`: the deadline had passed when the job was submitted.
    pub const DEADLINE_IN_PAST: &str = "DeadlineInPast";
    /// `FailureTarget`, `Failed`: tasks exceeded their back-off limit.
    pub const FAILED_INDEXES: &str = "FailedIndexes";
    /// `FailureTarget`, `Failed`, `SpecInvalid`: the specification is invalid.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// `SpecInvalid`: this operator does not know the last valid specification.
    pub const VALID_SPEC_UNKNOWN: &str = "ValidSpecUnknown";
    /// `FailureTarget`, `Failed`, `SpecInvalid` are false again: the specification was corrected.
    pub const SPEC_CORRECTED: &str = "SpecCorrected";
    /// `FailureTarget`, `DeadlineMissed` are false again: the last task finished before the deadline.
    pub const DEADLINE_MET: &str = "DeadlineMet";
    /// `Suspended` is true.
    pub const JOB_SUSPENDED: &str = "JobSuspended";
    /// `Suspended`: the job came out of a backup without its ledger.
    pub const RESTORED_WITHOUT_STATUS: &str = "RestoredWithoutStatus";
    /// `Suspended` is false again.
    pub const JOB_RESUMED: &str = "JobResumed";
    /// `DeadlineAtRisk`: a few tasks are far behind the others.
    pub const TASKS_STRAGGLING: &str = "TasksStraggling";
    /// `DeadlineAtRisk`: all tasks are too slow.
    pub const TASKS_SLOW: &str = "TasksSlow";
    /// `DeadlineAtRisk`: attempts failed, and their tasks start again.
    pub const ATTEMPTS_FAILING: &str = "AttemptsFailing";
    /// `DeadlineAtRisk`: tasks failed for good.
    pub const TASKS_FAILED: &str = "TasksFailed";
    /// `DeadlineAtRisk`: the containers of the tasks have not started.
    pub const ATTEMPTS_NOT_STARTED: &str = "AttemptsNotStarted";
    /// `DeadlineAtRisk`: tasks report no progress.
    pub const TASKS_SILENT: &str = "TasksSilent";
    /// `DeadlineAtRisk`: the deadline may have passed, but the apiserver's time is uncertain.
    pub const CLOCK_UNCERTAIN: &str = "ClockUncertain";
    /// `DeadlineAtRisk`, `TasksPending`: tasks wait for capacity. `DeadlineFeasible` is false: no node has free
    /// capacity for an attempt.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// `DeadlineAtRisk`, `TasksPending`: the namespace uses its share of the capacity, or others hold a part of it.
    pub const SHARE_IN_USE: &str = "ShareInUse";
    /// `DeadlineAtRisk`, `TasksPending`: as many jobs of the namespace are active as its limit allows.
    pub const ACTIVE_JOBS_LIMIT: &str = "ActiveJobsLimit";
    /// `DeadlineAtRisk`, `TasksPending`: a queue outside shed, such as one of Kueue, has not admitted the job or its pods.
    pub const WAITING_IN_QUEUE: &str = "WaitingInQueue";
    /// `TasksPending`: a failed task waits for its next attempt.
    pub const BACK_OFF: &str = "BackOff";
    /// `TasksPending`: the same, after an attempt that ended with exit code 0 and requested no commit grant.
    pub const COMMIT_NOT_REQUESTED: &str = "CommitNotRequested";
    /// `TasksPending`: a task's last attempt is still terminating.
    pub const ATTEMPT_TERMINATING: &str = "AttemptTerminating";
    /// `DeadlineAtRisk`, `TasksPending`: as many tasks run as `parallelism` allows.
    pub const PARALLELISM_REACHED: &str = "ParallelismReached";
    /// `TasksPending`, `CheckpointsNotDurable`: the job's object would exceed its size limit.
    pub const OBJECT_SIZE_LIMIT: &str = "ObjectSizeLimit";
    /// `CheckpointsNotDurable` is false.
    pub const CHECKPOINTS_DURABLE: &str = "CheckpointsDurable";
    /// `ClonesStopped`: the annotation of shed's own namespace stops new clones in the whole cluster.
    pub const CLUSTER_ANNOTATION: &str = "ClusterAnnotation";
    /// `ClonesStopped`: the annotation of the job's namespace stops its new clones.
    pub const NAMESPACE_ANNOTATION: &str = "NamespaceAnnotation";
    /// `ClonesStopped` is false.
    pub const CLONES_ALLOWED: &str = "ClonesAllowed";
    /// `TasksPending` is false.
    pub const NO_TASKS_PENDING: &str = "NoTasksPending";
    /// `DeadlineAtRisk` is false: PoCD is high enough.
    pub const ON_TRACK: &str = "OnTrack";
    /// `DeadlineAtRisk` is false: the job has ended.
    pub const JOB_ENDED: &str = "JobEnded";
    /// `DeadlineFeasible`: PoCD reaches the target.
    pub const TARGET_REACHABLE: &str = "TargetReachable";
    /// `DeadlineFeasible` is false: only a later deadline is feasible.
    pub const DEADLINE_INFEASIBLE: &str = "DeadlineInfeasible";
    /// `DeadlineAtRisk`, `DeadlineFeasible` are unknown: task durations are unknown.
    pub const DURATIONS_UNKNOWN: &str = "DurationsUnknown";
    /// `DeadlineFeasible` is unknown: the deadline counts from the job's start, and the job has not started.
    pub const CLOCK_NOT_STARTED: &str = "ClockNotStarted";
    /// `DeadlineUnknown`: fewer than 5 completed jobs of the class are known.
    pub const TOO_FEW_RUNS: &str = "TooFewRuns";
    /// `DeadlineUnknown` is false.
    pub const DEADLINE_FIXED: &str = "DeadlineFixed";
    /// `DeadlineMissed`: the deadline passed first. `DeadlineUnknown`: it had passed before shed could compute it.
    pub const DEADLINE_PASSED: &str = "DeadlinePassed";
    /// `DeadlineMissed` is false: the deadline was moved to later.
    pub const DEADLINE_MOVED: &str = "DeadlineMoved";
    /// `DeadlineMissed`: the job failed before the deadline.
    pub const FAILED_BEFORE_DEADLINE: &str = "FailedBeforeDeadline";
    /// `AttemptsBlocked`: a ResourceQuota refuses the pod.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// `AttemptsBlocked`: Pod Security or another admission plugin refuses the pod.
    pub const POD_FORBIDDEN: &str = "PodForbidden";
    /// `AttemptsBlocked`: the apiserver finds the pod invalid.
    pub const POD_INVALID: &str = "PodInvalid";
    /// `AttemptsBlocked`: the pod's creation failed for another reason.
    pub const POD_CREATION_FAILED: &str = "PodCreationFailed";
    /// `AttemptsBlocked`: no node of the cluster could run an attempt, even when empty.
    pub const NO_MATCHING_NODE: &str = "NoMatchingNode";
    /// `AttemptsBlocked`: the scheduler does not place the pods.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// `AttemptsBlocked`: the image cannot be pulled.
    pub const IMAGE_PULL_FAILED: &str = "ImagePullFailed";
    /// `AttemptsBlocked`: the kubelet cannot create the container from its configuration.
    pub const CONTAINER_CONFIG_ERROR: &str = "ContainerConfigError";
    /// `AttemptsBlocked`: a sidecar or init container crashes repeatedly before the task.
    pub const INIT_CONTAINER_CRASHES: &str = "InitContainerCrashes";
    /// `AttemptsBlocked`: a pod has been on its node for a minute, and none of its containers has started.
    pub const CONTAINERS_NOT_STARTED: &str = "ContainersNotStarted";
    /// `AttemptsBlocked`, and `AdoptionRefused` of a batch/v1 Job: the operator's memory budget does not admit the job.
    pub const OPERATOR_MEMORY: &str = "OperatorMemory";
    /// `AttemptsBlocked`: a task's container fails repeatedly, and is restarted in place.
    pub const CONTAINER_CRASHES: &str = "ContainerCrashes";
    /// `AttemptsBlocked` is false: attempts start again.
    pub const ATTEMPTS_STARTING: &str = "AttemptsStarting";
    /// `ProgressUnreachable`: running attempts do not respond.
    pub const NO_RESPONSE: &str = "NoResponse";
    /// `ProgressUnreachable` is false.
    pub const PROGRESS_REACHABLE: &str = "ProgressReachable";
    /// `AdoptionRefused`, `SpecInvalid`: an annotation is invalid or contradicts another.
    pub const INVALID_ANNOTATION: &str = "InvalidAnnotation";
    /// `AdoptionRefused`: the Job's pods should be scheduled as one unit, such as a gang.
    pub const GANG_SCHEDULING: &str = "GangScheduling";
    /// `AdoptionRefused`: the ledger of a started Job was deleted.
    pub const LEDGER_LOST: &str = "LedgerLost";
    /// `AdoptionRefused`: shed cannot create the `DeadlineJob` that holds the Job's ledger.
    pub const COMPANION_CREATION_FAILED: &str = "CompanionCreationFailed";
    /// `AdoptionRefused` is false: shed runs the Job.
    pub const ADOPTED: &str = "Adopted";
    /// `VolumeNotShared`: a claim is ReadWriteOnce or ReadWriteOncePod.
    pub const SINGLE_NODE_ACCESS_MODE: &str = "SingleNodeAccessMode";
    /// `VolumeNotShared` is false.
    pub const VOLUMES_SHARED: &str = "VolumesShared";
    /// `TerminationUnconfirmed`: the attempt's node is not Ready, or has no Node object.
    pub const NODE_UNREACHABLE: &str = "NodeUnreachable";
    /// `TerminationUnconfirmed`: the attempt's node is Ready, but its kubelet has not reported the termination.
    pub const TERMINATION_NOT_REPORTED: &str = "TerminationNotReported";
    /// `TerminationUnconfirmed` is false.
    pub const TERMINATION_CONFIRMED: &str = "TerminationConfirmed";
    /// `Quarantined`: the last reconcile panicked.
    pub const RECONCILE_PANICKED: &str = "ReconcilePanicked";
    /// `Quarantined`: the last reconcile exceeded its time limit and was canceled.
    pub const RECONCILE_TIMED_OUT: &str = "ReconcileTimedOut";
    /// `Quarantined`: a step of the last reconcile did not return, so the operator exited.
    pub const RECONCILE_STUCK: &str = "ReconcileStuck";
    /// `Quarantined` is false: a reconcile succeeded.
    pub const RECONCILED: &str = "Reconciled";
}
