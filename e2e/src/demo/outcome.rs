//! The result of a run, and of the three together.

use jiff::Timestamp;
use shed::api;

use super::attempt::{Attempt, median};
use super::live::Followed;
use crate::jobs::is_true;
use crate::table::table;

/// The deadline is this many times what a task takes on a node that is not slow: what a user would
/// grant who knows the work and leaves one and a half times as much again for trouble. The same factor
/// in every run, on every machine. It was 2.0 and was raised after runs on two busy cores missed: the
/// start of twelve pods and of clones is a large part of so short a task there.
pub const DEADLINE_FACTOR: f64 = 2.5;

/// One of the three runs.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub label: &'static str,
    /// From the job's creation to its last winner's end; none if it did not complete.
    pub seconds: Option<f64>,
    pub met: bool,
    pub clones: usize,
    pub kills: usize,
    /// Part of the tasks that winners did not do again, in tasks.
    pub resumed: f64,
    /// Whether the merged result equals the single-process count; none if there is no result.
    pub equal: Option<bool>,
}

impl Outcome {
    /// Judges a run; `deadline` in seconds from its creation.
    pub fn judge(
        label: &'static str,
        run: &Followed,
        created: Timestamp,
        deadline: i64,
        equal: Option<bool>,
    ) -> Self {
        let seconds = run.completed.then(|| last_win(&run.attempts)).flatten();
        let seconds = seconds.map(|end| end.duration_since(created).as_secs_f64());
        // shed has its own judgement of its jobs: it must agree.
        let job = run.deadline_job.as_ref();
        let missed = job.is_some_and(|job| is_true(job, api::DEADLINE_MISSED));
        let met = !missed && seconds.is_some_and(|seconds| seconds <= deadline as f64);
        Self {
            label,
            seconds,
            met,
            clones: run
                .attempts
                .iter()
                .filter(|one| one.kind == "clone")
                .count(),
            kills: run.kills,
            resumed: winners(&run.attempts).map(|winner| winner.resumes_at).sum(),
            equal,
        }
    }
}

/// The attempt of each task that succeeded first.
pub fn winners(attempts: &[Attempt]) -> impl Iterator<Item = &Attempt> {
    attempts.iter().filter(|one| {
        let end = |attempt: &Attempt| attempt.ended.map(|(end, _)| (end, attempt.number));
        let mut siblings = attempts
            .iter()
            .filter(|other| other.task == one.task && other.succeeded());
        one.succeeded() && siblings.all(|other| end(one) <= end(other))
    })
}

fn last_win(attempts: &[Attempt]) -> Option<Timestamp> {
    winners(attempts)
        .filter_map(|winner| Some(winner.ended?.0))
        .max()
}

/// Median time from a pod's creation to its task's end on nodes that are not slow.
pub fn healthy_seconds(attempts: &[Attempt], slow_node: Option<&str>) -> Option<f64> {
    let healthy = attempts
        .iter()
        .filter(|attempt| attempt.succeeded() && attempt.node.as_deref() != slow_node);
    median(healthy.filter_map(Attempt::seconds))
}

/// The deadline in whole seconds.
pub fn deadline_seconds(healthy: f64, waves: u32) -> i64 {
    (DEADLINE_FACTOR * healthy * f64::from(waves)).ceil() as i64
}

/// The closing table.
pub fn results(outcomes: &[Outcome], deadline: i64, healthy: f64) -> String {
    let head = [
        "",
        "finished after",
        "deadline",
        "met",
        "clones",
        "kills",
        "work saved by resuming",
        "result",
    ];
    let row = |outcome: &Outcome| {
        let seconds = outcome.seconds.map(|seconds| format!("{seconds:.0} s"));
        let result = outcome
            .equal
            .map(|equal| if equal { "equal" } else { "DIFFERS" });
        vec![
            outcome.label.to_owned(),
            seconds.unwrap_or_else(|| "stopped".to_owned()),
            format!("{deadline} s"),
            if outcome.met { "yes" } else { "MISSED" }.to_owned(),
            outcome.clones.to_string(),
            outcome.kills.to_string(),
            format!("{:.1} s", outcome.resumed * healthy),
            result.unwrap_or("none").to_owned(),
        ]
    };
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(outcomes.iter().map(row));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(task: u32, number: u32, end: Option<i64>, node: &str, resumes_at: f64) -> Attempt {
        let second = |second| Timestamp::from_second(second).unwrap();
        Attempt {
            task,
            number,
            kind: if number == 0 { "original" } else { "clone" }.to_owned(),
            node: Some(node.to_owned()),
            created: second(0),
            ended: end.map(|end| (second(end), 0)),
            resumes_at,
            deleted: end.is_none().then(|| second(9)),
        }
    }

    fn clone_wins() -> Followed {
        let attempts = vec![
            attempt(0, 0, Some(9), "n1", 0.0),
            attempt(1, 0, None, "n2", 0.0),
            attempt(1, 1, Some(15), "n1", 0.25),
        ];
        Followed {
            attempts,
            completed: true,
            kills: 1,
            deadline_job: None,
        }
    }

    #[test]
    fn a_run_is_judged_by_its_last_winner() {
        let outcome = Outcome::judge(
            "x",
            &clone_wins(),
            Timestamp::from_second(0).unwrap(),
            15,
            Some(true),
        );
        assert_eq!((outcome.seconds, outcome.met), (Some(15.0), true));
        assert_eq!((outcome.clones, outcome.kills), (1, 1));
        assert!((outcome.resumed - 0.25).abs() < 1e-9);
        assert!(
            !Outcome::judge(
                "x",
                &clone_wins(),
                Timestamp::from_second(0).unwrap(),
                14,
                Some(true)
            )
            .met
        );
    }

    #[test]
    fn the_slow_node_does_not_count_as_healthy() {
        assert_eq!(healthy_seconds(&clone_wins().attempts, Some("n1")), None);
        assert_eq!(
            healthy_seconds(&clone_wins().attempts, Some("n2")),
            Some(12.0)
        );
        assert_eq!(deadline_seconds(12.2, 1), 31);
    }
}
