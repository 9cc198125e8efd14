//! When the next pass begins: after a pause, with the first change or when the time asks for it.

use std::time::Duration;

use shed_core::plan::PlanReport;
use shed_core::time::Instant;

use crate::clock::{self, Clock};
use crate::context::Context;
use crate::context::spacing::PLAN_PAUSE_MAX;

/// Shortest pause: a burst of events makes one plan.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The pause per time of the pass before it: while pauses are between these bounds, passes take a fiftieth of a core.
const PAUSE_PER_PASS: u32 = 49;

/// A pass that nothing but the time asks for comes no sooner than this.
const WAKE_MIN: Duration = Duration::from_millis(300);
/// A pass happens this often even if nothing does.
pub(super) const PASS_PERIOD_MAX: Duration = Duration::from_secs(10);

/// Waits after a pass that took `pass`, and then for a change that the watches show, but not longer than `wake`.
pub(super) async fn changed(context: &Context, pass: Duration, wake: Duration) {
    tokio::time::sleep(pause_after(pass)).await;
    tokio::select! {
        () = context.stores.changed.notified() => {}
        () = tokio::time::sleep(wake) => {}
    }
}

/// How long until the next pass, if nothing happens: the report's time is the apiserver's, `due` is by
/// the process's own clock.
pub(super) fn next_pass(report: &PlanReport, due: Option<Instant>, clock: &Clock) -> Duration {
    let planned = report.next_pass.map(|at| at.since(clock.now()));
    let due = due.map(|at| at.since(clock.ticks()));
    let wait = planned.into_iter().chain(due).min();
    wait.map_or(PASS_PERIOD_MAX, clock::duration)
        .clamp(WAKE_MIN, PASS_PERIOD_MAX)
}

fn pause_after(pass: Duration) -> Duration {
    (pass * PAUSE_PER_PASS).clamp(PAUSE_MIN, clock::duration(PLAN_PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_pass_is_followed_by_a_longer_pause() {
        let pause = |millis| pause_after(Duration::from_millis(millis)).as_millis();
        assert_eq!(
            [0, 2, 4, 8, 11, 1000].map(pause),
            [100, 100, 196, 392, 500, 500]
        );
    }
}
