//! What clones gain is learned from pairs of attempts of one task: see [`CloneGains`](crate::memory::CloneGains).

use crate::memory::Pair;
use crate::policy::shed_prime::PrimeDesk;
use crate::round::{AttemptEstimate, JobView, REPORTS_MIN, TaskEstimate};
use crate::time::Instant;

/// Counts the pairs of attempts that both have reported since pairs of their job were counted last.
pub(super) fn learn(desk: &mut PrimeDesk<'_, '_>) {
    let now = desk.now();
    let (jobs, gains) = desk.jobs_and_clone_gains();
    for state in jobs.iter().filter(|state| state.is_looked_at()) {
        let job = state.job;
        let last = gains.last_counted(&job.key);
        let mut is_counted = false;
        for task in state.estimate.cloned() {
            for pair in pairs(state, task, last) {
                gains.note(&job.tenant, job.class.as_ref(), now, pair);
                is_counted = true;
            }
        }
        if is_counted {
            gains.count(&job.key, now);
        }
    }
}

/// Each later attempt of the task with its first one, if both have reported and were not counted before.
fn pairs<'s>(
    state: &'s JobView<'_>,
    task: &'s TaskEstimate,
    last: Option<Instant>,
) -> impl Iterator<Item = Pair> + 's {
    let facts = state.job.task(task.index);
    let first_report = move |attempt: &AttemptEstimate| {
        let facts = facts?.attempts.iter();
        let facts = facts.filter(|facts| facts.number == attempt.number);
        facts
            .filter_map(|facts| Some(facts.progress?.first_at))
            .next()
    };
    let first = task.attempts.first();
    let others = task.attempts.iter().skip(1);
    others.filter_map(move |other| {
        let first = first?;
        let seen = first_report(first)?.max(first_report(other)?);
        let is_new = last.is_none_or(|last| seen > last);
        is_new.then(|| pair(state, task, first, other)).flatten()
    })
}

/// The two attempts, next to what the job's other tasks would lead to expect of the second one if its time were its
/// own. It has run for some time already, so only longer times count.
fn pair(
    state: &JobView<'_>,
    task: &TaskEstimate,
    first: &AttemptEstimate,
    second: &AttemptEstimate,
) -> Option<Pair> {
    let (first_total, second_total) = (first.total?, second.total?);
    let others = state.estimate.tasks.iter();
    let others = others.filter(|other| other.index != task.index);
    let predicted = others.flat_map(|other| &other.attempts);
    let predicted = predicted.filter_map(|attempt| attempt.total);
    let times = predicted.chain(state.estimate.ended.iter().copied());
    let (mut sum, mut count) = (0.0, 0);
    for time in times.filter(|time| *time > second.whole_age()) {
        sum += squared_ln(time, first_total);
        count += 1;
    }
    (count >= REPORTS_MIN).then(|| Pair {
        seen: squared_ln(second_total, first_total),
        expected: sum / count as f64,
    })
}

fn squared_ln(a: f64, b: f64) -> f64 {
    let ln = libm::log(a / b);
    ln * ln
}
