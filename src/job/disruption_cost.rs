//! What a disruption of an attempt would cost its job, for programs that disrupt pods, such as autoscalers. Pure.

use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobSnapshot, TaskSnapshot};
use shed_core::time::{Instant, Span};

/// An attempt that loses less work than this is not at risk: moving it costs little more than the start of a pod. It
/// also keeps short attempts from costing writes.
const LOSS_MIN: Span = Span::from_seconds(60);

/// From this progress on, an attempt at risk has the higher cost.
const LATE_PROGRESS: f64 = 0.5;

/// Disruption cost of an attempt at risk. Karpenter counts a pod as 1 + cost / 2^27, at most 10.
pub const AT_RISK: i32 = 4 << 27;

/// Disruption cost of an attempt at risk that has done half of its work.
pub const AT_RISK_LATE: i32 = 9 << 27;

/// What a job's deadline leaves of time.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Whether the job is at risk.
    pub is_at_risk: bool,
    /// Its expected completion.
    pub completion: Option<Instant>,
    /// When.
    pub now: Instant,
}

/// The disruption cost of an attempt, 0 if it is not at risk.
///
/// An attempt is at risk if it runs alone in its task, a restart would repeat at least [`LOSS_MIN`] of work, and the
/// job is at risk already or has less slack than that work. Past the deadline there is nothing left to protect.
pub fn of(job: &JobSnapshot, task: &TaskSnapshot, attempt: &AttemptSnapshot, at: Standing) -> i32 {
    let runs = |one: &AttemptSnapshot| one.lives() && one.state == AttemptState::Running;
    let is_alone = task.attempts.iter().filter(|one| runs(one)).count() == 1;
    let Some(deadline) = job.deadline.filter(|deadline| *deadline > at.now) else {
        return 0;
    };
    if !runs(attempt) || !is_alone || task.winner.is_some() {
        return 0;
    }
    let Some(lost) = work_lost(job, task, attempt, at.now).filter(|lost| *lost >= LOSS_MIN) else {
        return 0;
    };
    let is_short = at.completion.is_some_and(|end| deadline.since(end) < lost);
    if !at.is_at_risk && !is_short {
        return 0;
    }
    match attempt.progress {
        Some(progress) if progress.last >= LATE_PROGRESS => AT_RISK_LATE,
        _ => AT_RISK,
    }
}

/// The work that a restart would repeat: all of the attempt's, or that since the best checkpoint.
fn work_lost(
    job: &JobSnapshot,
    task: &TaskSnapshot,
    attempt: &AttemptSnapshot,
    now: Instant,
) -> Option<Span> {
    let worked = now.since(attempt.started?);
    let Some(progress) = attempt
        .progress
        .filter(|_| job.rules.resume.keeps_checkpoints())
    else {
        return Some(worked);
    };
    let points = attempt.checkpoint.iter().chain(&task.resume_point);
    let kept = points
        .map(|point| point.progress)
        .fold(attempt.start_progress, f64::max);
    let done = progress.last - attempt.start_progress;
    let share = match done > 0.0 {
        true => ((progress.last - kept) / done).clamp(0.0, 1.0),
        false => 1.0,
    };
    Some(Span::from_seconds_f64(worked.seconds() * share))
}

#[cfg(test)]
mod tests {
    use shed_core::fixtures::{AttemptBuilder, JobBuilder, at, attempt, job};
    use shed_core::snapshot::KillKind;

    use super::*;

    /// The disruption cost of the first attempt of task 0 at 700 s. The deadline is at 1000 s.
    fn cost_at_700(
        change: impl FnOnce(JobBuilder) -> JobBuilder,
        attempts: Vec<AttemptBuilder>,
        is_at_risk: bool,
        completion: f64,
    ) -> i32 {
        let job = change(job("a").deadline_in(1000.0))
            .task(0, attempts)
            .build();
        let standing = Standing {
            is_at_risk,
            completion: Some(at(completion)),
            now: at(700.0),
        };
        of(&job, &job.tasks[0], &job.tasks[0].attempts[0], standing)
    }

    fn same(job: JobBuilder) -> JobBuilder {
        job
    }

    /// Launched at 99 s, and started at 100 s.
    fn running() -> AttemptBuilder {
        attempt(0).launched(99.0)
    }

    #[test]
    fn an_attempt_has_a_cost_once_its_restart_would_be_late() {
        // A restart repeats 600 s.
        assert_eq!(cost_at_700(same, vec![running()], false, 390.0), 0);
        assert_eq!(cost_at_700(same, vec![running()], false, 410.0), AT_RISK);
        let late = || vec![running().progress(0.6, 699.0)];
        assert_eq!(cost_at_700(same, late(), false, 800.0), AT_RISK_LATE);
        // The job is at risk anyway.
        assert_eq!(cost_at_700(same, vec![running()], true, 390.0), AT_RISK);
        let young = || vec![attempt(0).launched(640.0)];
        assert_eq!(cost_at_700(same, young(), true, 990.0), 0, "59 s");
    }

    #[test]
    fn work_behind_a_checkpoint_is_not_lost() {
        let attempts = |checkpoint| vec![running().progress(0.6, 700.0).checkpoint(checkpoint)];
        // A sixth of 600 s, and a twelfth.
        let resumes = JobBuilder::resumes;
        assert_eq!(
            cost_at_700(resumes, attempts(0.5), true, 990.0),
            AT_RISK_LATE
        );
        assert_eq!(cost_at_700(resumes, attempts(0.55), true, 990.0), 0);
        assert_eq!(cost_at_700(same, attempts(0.55), true, 990.0), AT_RISK_LATE);
    }

    #[test]
    fn nothing_is_protected_with_a_sibling_or_past_the_deadline() {
        let with = |sibling: AttemptBuilder| vec![running(), sibling];
        assert_eq!(cost_at_700(same, with(attempt(1)), true, 990.0), 0);
        assert_eq!(
            cost_at_700(same, with(attempt(1).pending()), true, 990.0),
            AT_RISK
        );
        let killed = attempt(1).killed(KillKind::Prune, 650.0);
        assert_eq!(cost_at_700(same, with(killed), true, 990.0), AT_RISK);
        assert_eq!(cost_at_700(same, vec![running().pending()], true, 990.0), 0);
        let late = |job: JobBuilder| job.deadline_in(700.0);
        assert_eq!(cost_at_700(late, vec![running()], true, 990.0), 0);
        let without = |job: JobBuilder| job.with(|job| job.deadline = None);
        assert_eq!(cost_at_700(without, vec![running()], true, 990.0), 0);
    }
}
