//! Every state of a job with its words.

use super::{NAMED, REQUEST_A_GRANT, Row, Says};
use crate::api::{self, reason};

const FAILURE: &[&str] = &[api::FAILURE_TARGET, api::FAILED];
const SUCCESS: &[&str] = &[api::SUCCESS_CRITERIA_MET, api::COMPLETE];

const fn blocked(
    condition: &'static [&'static str],
    reason: &'static str,
    message: &'static str,
    help: &'static str,
) -> Row {
    Row {
        conditions: condition,
        status: "True",
        reason,
        says: Says::Blocked,
        message,
        help,
    }
}

const fn verdict(
    conditions: &'static [&'static str],
    reason: &'static str,
    message: &'static str,
    help: &'static str,
) -> Row {
    Row {
        says: Says::Verdict,
        ..blocked(conditions, reason, message, help)
    }
}

const fn over(
    conditions: &'static [&'static str],
    reason: &'static str,
    message: &'static str,
) -> Row {
    Row {
        status: "False",
        says: Says::Over,
        ..blocked(conditions, reason, message, "")
    }
}

/// Every state, by condition.
pub const TABLE: &[Row] = &[
    blocked(
        &[api::SUSPENDED],
        reason::JOB_SUSPENDED,
        "spec.suspend is true: shed starts no attempts, and the deadline's clock keeps running",
        "set spec.suspend to false to resume the job; a queue such as Kueue's does that when it admits the job",
    ),
    blocked(
        &[api::SUSPENDED],
        reason::RESTORED_WITHOUT_STATUS,
        "a backup restored the job without its status, so which tasks were done is unknown; shed starts no attempts, and \
         the deadline's clock keeps running",
        "restore the status too, or remove the label velero.io/restore-name to run all tasks again",
    ),
    over(
        &[api::SUSPENDED],
        reason::JOB_RESUMED,
        "nothing suspends the job any more",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::QUOTA_EXCEEDED,
        "{}",
        "raise the ResourceQuota, or wait until other pods of the namespace finish",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::POD_FORBIDDEN,
        "{}",
        "ask the owner of the admission rule, or submit the job again with a spec.template that it accepts",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::POD_INVALID,
        "{}",
        "correct the LimitRange or the webhook that the message names: shed retries by itself; if spec.template is at fault, submit the job again with another",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::POD_CREATION_FAILED,
        "{}",
        "fix the cause that the message names; shed retries by itself",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::NO_MATCHING_NODE,
        "{}",
        "add a node that can run its pods, or submit the job again with another spec.template",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::UNSCHEDULABLE,
        "{}",
        "fix the cause that the message names; shed continues when a pod is scheduled",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::IMAGE_PULL_FAILED,
        "{}",
        "check the image's name and the pull secrets; shed retries by itself",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::CONTAINER_CONFIG_ERROR,
        "{}",
        "check the ConfigMaps, Secrets, volumes and commands of that container",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::INIT_CONTAINER_CRASHES,
        "{}",
        "read the log of that container",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::CONTAINERS_NOT_STARTED,
        "no container has started in {}",
        "find the cause in the pod's events with kubectl describe pod: a missing ConfigMap, Secret or claim, or an \
         image that takes long to pull",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::OPERATOR_MEMORY,
        "the job starts once other jobs end: shed keeps unfinished jobs whole in three eighths of its memory, which \
         namespaces share",
        "make the pod template smaller, wait, or raise the operator's memory limit",
    ),
    blocked(
        &[api::ATTEMPTS_BLOCKED],
        reason::CONTAINER_CRASHES,
        "{}",
        "read the log of that container",
    ),
    over(
        &[api::ATTEMPTS_BLOCKED],
        reason::ATTEMPTS_STARTING,
        "attempts can start",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::INSUFFICIENT_CAPACITY,
        "tasks wait for capacity: every slot that they may use is taken",
        "add nodes, raise --capacity-share, or wait until other attempts finish",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::SHARE_IN_USE,
        "tasks wait for capacity, because namespaces share it: {}",
        "wait until attempts of this namespace finish, or ask an administrator for more nodes or a higher label \
         shed.dev/share of the Namespace",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::ACTIVE_JOBS_LIMIT,
        "the job waits because at most {} jobs of this namespace may be active",
        "wait until one of them ends, or ask an administrator to raise the annotation shed.dev/max-active-jobs of the \
         Namespace",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::WAITING_IN_QUEUE,
        "attempts wait until another controller removes the scheduling gate {} from their pods",
        "with Kueue, read the Workload of a pod: its queue may lack quota",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::BACK_OFF,
        "a failed task waits until {} for its next attempt",
        "read the log of the failed attempt",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::COMMIT_NOT_REQUESTED,
        "a failed task waits until {} for its next attempt; an attempt ended with exit code 0 and never requested a \
         commit grant, so it counts as failed",
        REQUEST_A_GRANT,
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::ATTEMPT_TERMINATING,
        "a task waits because its last attempt is still terminating",
        "shorten the template's terminationGracePeriodSeconds, or let the task end on SIGTERM",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::PARALLELISM_REACHED,
        "as many tasks run as spec.parallelism allows",
        "raise spec.parallelism",
    ),
    blocked(
        &[api::TASKS_PENDING],
        reason::OBJECT_SIZE_LIMIT,
        "the job may have at most {} live attempts: with more its object could exceed 1 MiB",
        "split the job, or make its template and annotations smaller",
    ),
    over(
        &[api::TASKS_PENDING],
        reason::NO_TASKS_PENDING,
        "no runnable task is waiting",
    ),
    blocked(
        &[api::CLONES_STOPPED],
        reason::CLUSTER_ANNOTATION,
        "the annotation shed.dev/clones: stop of shed's namespace {} stops new clones in the whole cluster; live \
         clones continue",
        "remove the annotation to allow clones",
    ),
    blocked(
        &[api::CLONES_STOPPED],
        reason::NAMESPACE_ANNOTATION,
        "the annotation shed.dev/clones: stop of namespace {} stops new clones of its jobs; live clones continue",
        "remove the annotation to allow clones",
    ),
    over(
        &[api::CLONES_STOPPED],
        reason::CLONES_ALLOWED,
        "no annotation affects the clones of the job",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::TASKS_STRAGGLING,
        "a few tasks are far behind the others: {}",
        "move the deadline, or add capacity for clones",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::TASKS_SLOW,
        "the tasks take too long for the deadline; PoCD fell below {}",
        "move the deadline, or give each task more resources",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::ATTEMPTS_FAILING,
        "attempts failed, and shed starts their tasks again: {}",
        "read the log of the failed attempts, and move the deadline",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::TASKS_FAILED,
        "tasks failed for good, and shed starts no further attempts of them: {}",
        "read the log of their last attempts",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::ATTEMPTS_NOT_STARTED,
        "tasks that may be late have not started: {}",
        "fix what AttemptsBlocked or kubectl describe pod names, or move the deadline",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::JOB_SUSPENDED,
        "the job is suspended, and the deadline's clock keeps running; PoCD fell below {}",
        "set spec.suspend to false, or move the deadline",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::TASKS_SILENT,
        "tasks report no progress: {}",
        "check that the tasks write their progress, and that the operator can reach their progress port",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::INSUFFICIENT_CAPACITY,
        "tasks wait for capacity; PoCD fell below {}",
        "move the deadline, or add capacity",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::SHARE_IN_USE,
        "tasks wait for the share of this namespace in the capacity; PoCD fell below {}",
        "move the deadline, or ask an administrator for more nodes or a higher label shed.dev/share of the Namespace",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::ACTIVE_JOBS_LIMIT,
        "the job waits for one of the active jobs of this namespace to end; PoCD fell below {}",
        "move the deadline, or ask an administrator to raise the annotation shed.dev/max-active-jobs of the Namespace",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::WAITING_IN_QUEUE,
        "the job waits in a queue, and the deadline's clock keeps running; PoCD fell below {}",
        "raise the quota of the queue or the job's priority in it, or move the deadline",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::PARALLELISM_REACHED,
        "tasks wait because as many run as spec.parallelism allows; PoCD fell below {}",
        "raise spec.parallelism, or move the deadline",
    ),
    blocked(
        &[api::DEADLINE_AT_RISK],
        reason::CLOCK_UNCERTAIN,
        "the deadline or the time limit may have passed, but shed does not know the apiserver's time \
         to within 2 s; the job continues until it does",
        "synchronize the clocks of the apiservers; see shed_clock_uncertainty_seconds",
    ),
    Row {
        status: "Unknown",
        ..verdict(
            &[api::DEADLINE_AT_RISK, api::DEADLINE_FEASIBLE],
            reason::DURATIONS_UNKNOWN,
            "task durations are not known yet",
            "shed learns them from progress reports, from the first tasks that end, and from earlier jobs of the class \
             ({}, or the CronJob); spec.expectedTaskDuration states them",
        )
    },
    over(&[api::DEADLINE_AT_RISK], reason::ON_TRACK, "{}"),
    over(
        &[api::DEADLINE_AT_RISK],
        reason::JOB_ENDED,
        "the job has ended{}",
    ),
    verdict(
        &[api::DEADLINE_FEASIBLE],
        reason::TARGET_REACHABLE,
        "{}",
        "",
    ),
    Row {
        status: "False",
        ..verdict(
            &[api::DEADLINE_FEASIBLE],
            reason::DEADLINE_INFEASIBLE,
            "{}",
            NAMED,
        )
    },
    Row {
        status: "False",
        ..blocked(
            &[api::DEADLINE_FEASIBLE],
            reason::INSUFFICIENT_CAPACITY,
            "no node that the tasks may use has free capacity for one",
            "add a node, or submit the job again with a spec.template that requests less or allows more nodes",
        )
    },
    Row {
        status: "Unknown",
        ..verdict(
            &[api::DEADLINE_FEASIBLE],
            reason::CLOCK_NOT_STARTED,
            "the deadline's clock has not started; {}",
            "",
        )
    },
    verdict(
        &[api::DEADLINE_UNKNOWN],
        reason::TOO_FEW_RUNS,
        "spec.deadline.history needs 5 completed jobs of the class, and shed knows {}; the job runs without a deadline \
         until then",
        "each completed job of the class adds one; set spec.deadline.within if the job needs a deadline now",
    ),
    verdict(
        &[api::DEADLINE_UNKNOWN],
        reason::DEADLINE_PASSED,
        "by spec.deadline.history the deadline was {}, which had passed before shed could compute it; the job runs \
         without a deadline",
        "",
    ),
    over(
        &[api::DEADLINE_UNKNOWN],
        reason::DEADLINE_FIXED,
        "the deadline is fixed",
    ),
    verdict(
        &[api::DEADLINE_MISSED],
        reason::DEADLINE_PASSED,
        "not complete at {}",
        "",
    ),
    verdict(
        &[api::DEADLINE_MISSED],
        reason::FAILED_BEFORE_DEADLINE,
        "the job failed, so it cannot be complete at {}",
        "",
    ),
    over(
        &[api::DEADLINE_MISSED, api::FAILURE_TARGET],
        reason::DEADLINE_MET,
        "the last task finished before the deadline",
    ),
    over(
        &[api::DEADLINE_MISSED],
        reason::DEADLINE_MOVED,
        "the deadline was moved to a later time",
    ),
    verdict(
        SUCCESS,
        reason::COMPLETIONS_REACHED,
        "all {} tasks have a winner",
        "",
    ),
    verdict(
        SUCCESS,
        reason::SUCCESS_POLICY,
        "{} tasks have a winner, enough for spec.successPolicy",
        "",
    ),
    verdict(
        FAILURE,
        reason::DEADLINE_MISSED,
        "{} tasks were complete at the deadline and spec.onMiss is Fail",
        "",
    ),
    verdict(
        FAILURE,
        reason::DEADLINE_EXCEEDED,
        "{} tasks were complete when spec.activeDeadlineSeconds had passed",
        "",
    ),
    verdict(
        FAILURE,
        reason::MAX_FAILED_INDEXES,
        "tasks {} failed for good, more than spec.maxFailedIndexes allows",
        "",
    ),
    verdict(
        FAILURE,
        reason::BACKOFF_LIMIT,
        "the job has reached spec.backoffLimit: {}",
        "",
    ),
    verdict(FAILURE, reason::POD_FAILURE_POLICY, "{}", ""),
    verdict(
        FAILURE,
        reason::DEADLINE_IN_PAST,
        "spec.deadline had passed when the job was submitted; nothing was launched",
        "submit it with a later deadline",
    ),
    verdict(
        FAILURE,
        reason::FAILED_INDEXES,
        "tasks {} failed for good: more often than spec.backoffLimitPerIndex allows, or by a rule of \
         spec.podFailurePolicy",
        "",
    ),
    verdict(
        &[api::FAILURE_TARGET, api::FAILED, api::ADOPTION_REFUSED],
        reason::INVALID_SPEC,
        "{}",
        NAMED,
    ),
    over(
        &[api::FAILURE_TARGET, api::FAILED, api::SPEC_INVALID],
        reason::SPEC_CORRECTED,
        "the specification is valid now",
    ),
    blocked(
        &[api::SPEC_INVALID],
        reason::INVALID_SPEC,
        "{}; the job continues by its last valid specification",
        NAMED,
    ),
    blocked(
        &[api::SPEC_INVALID],
        reason::VALID_SPEC_UNKNOWN,
        "{}; this operator does not know the last valid specification, so it starts no more attempts: those that run \
         can still succeed, and the deadline stays",
        NAMED,
    ),
    blocked(
        &[api::SPEC_INVALID],
        reason::INVALID_ANNOTATION,
        "{}; the Job continues by its former annotations",
        NAMED,
    ),
    blocked(
        &[api::PROGRESS_UNREACHABLE],
        reason::NO_RESPONSE,
        "none of {} running attempts responds on its progress port",
        "allow the operator to reach it: a NetworkPolicy or strict mTLS may block it",
    ),
    over(
        &[api::PROGRESS_UNREACHABLE],
        reason::PROGRESS_REACHABLE,
        "attempts respond to progress polls",
    ),
    blocked(
        &[api::VOLUME_NOT_SHARED],
        reason::SINGLE_NODE_ACCESS_MODE,
        "{}",
        NAMED,
    ),
    blocked(
        &[api::CHECKPOINTS_NOT_DURABLE],
        reason::OBJECT_SIZE_LIMIT,
        "the checkpoints of {} tasks are not durable: with them the job's object would exceed 1 MiB. After \
         a failure, or a restart of shed, these tasks may start over",
        "write shorter checkpoints, or split the job",
    ),
    over(
        &[api::CHECKPOINTS_NOT_DURABLE],
        reason::CHECKPOINTS_DURABLE,
        "every checkpoint is durable",
    ),
    over(
        &[api::VOLUME_NOT_SHARED],
        reason::VOLUMES_SHARED,
        "every volume can be mounted from several nodes, or none needs to be",
    ),
    blocked(
        &[api::TERMINATION_UNCONFIRMED],
        reason::NODE_UNREACHABLE,
        "{}",
        NAMED,
    ),
    blocked(
        &[api::TERMINATION_UNCONFIRMED],
        reason::TERMINATION_NOT_REPORTED,
        "{}",
        NAMED,
    ),
    over(
        &[api::TERMINATION_UNCONFIRMED],
        reason::TERMINATION_CONFIRMED,
        "every attempt that others wait for has terminated",
    ),
    // Written by `quarantine::note`, without the code that may have failed.
    verdict(&[api::QUARANTINED], reason::RECONCILE_PANICKED, "{}", NAMED),
    verdict(
        &[api::QUARANTINED],
        reason::RECONCILE_TIMED_OUT,
        "{}",
        NAMED,
    ),
    verdict(&[api::QUARANTINED], reason::RECONCILE_STUCK, "{}", NAMED),
    over(
        &[api::QUARANTINED],
        reason::RECONCILED,
        "the last reconcile of the job succeeded",
    ),
    verdict(
        &[api::ADOPTION_REFUSED],
        reason::INVALID_ANNOTATION,
        "{}",
        NAMED,
    ),
    verdict(
        &[api::ADOPTION_REFUSED],
        reason::GANG_SCHEDULING,
        "{}",
        NAMED,
    ),
    verdict(&[api::ADOPTION_REFUSED], reason::LEDGER_LOST, "{}", NAMED),
    verdict(
        &[api::ADOPTION_REFUSED],
        reason::COMPANION_CREATION_FAILED,
        "{}",
        NAMED,
    ),
    verdict(
        &[api::ADOPTION_REFUSED],
        reason::OPERATOR_MEMORY,
        "{}",
        NAMED,
    ),
    over(
        &[api::ADOPTION_REFUSED],
        reason::ADOPTED,
        "shed runs the Job",
    ),
];
