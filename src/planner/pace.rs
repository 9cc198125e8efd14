//! The pauses between passes.

use std::time::Duration;

use crate::context::Context;

/// Shortest pause: a burst of events makes one plan.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause because of what a pass costs. A job waits that long for its first pod, and a straggler for its clone.
/// Reconcilers see ends and stop losers meanwhile.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The pause per time of the pass before it: while pauses are between these bounds, passes take a fiftieth of a core.
const PAUSE_PER_PASS: u32 = 49;

/// Waits after a pass that took `pass`, and then for a change that the watches show, but not longer than `wake`.
pub(super) async fn changed(context: &Context, pass: Duration, wake: Duration) {
    tokio::time::sleep(pause_after(pass)).await;
    tokio::select! {
        () = context.stores.changed.notified() => {}
        () = tokio::time::sleep(wake) => {}
    }
}

fn pause_after(pass: Duration) -> Duration {
    (pass * PAUSE_PER_PASS).clamp(PAUSE_MIN, PAUSE_MAX)
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
