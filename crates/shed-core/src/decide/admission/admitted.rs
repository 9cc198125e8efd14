//! Jobs that a quota outside shed has admitted. It counts on their attempts, so these are launched at once, before those
//! of other jobs. Without free capacity they wait as pods, and the cluster may grow for them.

use crate::decide::admission::{Turn, capacity_for_one};
use crate::round::Round;

/// Launches what their tasks wait for, in the order of submission.
pub(super) fn serve(pass: &mut Round<'_>) {
    let now = pass.snapshot.now;
    if pass.jobs.iter().all(|state| state.job.admitted.is_none()) {
        return;
    }
    for position in pass.by_submission() {
        let state = pass.jobs.get(position);
        let state = state.filter(|state| state.job.admitted.is_some() && state.may_launch(now));
        let turn = state.and_then(|_| Turn::within(pass, position, u32::MAX));
        let Some(mut turn) = turn else {
            continue;
        };
        while turn.launched < turn.slots {
            let node = capacity_for_one(pass, position);
            if !turn.launch(pass, node, false) {
                break;
            }
        }
        turn.finish(pass);
    }
}
