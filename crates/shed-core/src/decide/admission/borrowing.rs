//! What tenants borrow: the first attempts that the tenants' shares stopped, from what is left.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::decide::admission::{Paused, Surge};
use crate::decide::evict::Evictions;
use crate::decide::order::{Rank, urgency_within};
use crate::round::{Number, Round};

/// The place of a job among the borrowers. A tenant without attempts comes first, then the jobs that would miss their
/// deadlines and whose tenants have credit, then the tenants by credit, then the jobs by rank.
type Place<'a> = (Reverse<bool>, Reverse<bool>, Reverse<Number>, Rank<'a>);

/// Serves attempt by attempt, because each one costs its tenant credit.
pub(super) fn serve<'a>(
    pass: &mut Round<'a>,
    mut paused: Vec<Paused<'a>>,
    evictions: &mut Evictions,
    surge: &mut Surge,
) {
    let misses = |(_, turn): &Paused<'_>| would_miss(pass, turn.position);
    let misses: Vec<bool> = paused.iter().map(misses).collect();
    let place = |pass: &Round<'a>, rank: Rank<'a>, position: usize, misses: bool| -> Place<'a> {
        let credit = pass.shares.credit(position);
        (
            Reverse(pass.shares.is_first(position)),
            Reverse(misses && credit > 0.0),
            Reverse(Number(credit)),
            rank,
        )
    };
    let mut queue = BTreeSet::new();
    for (at, ((rank, turn), misses)) in paused.iter().zip(&misses).enumerate() {
        queue.insert((place(pass, *rank, turn.position, *misses), at));
    }
    while let Some((last, at)) = queue.pop_first() {
        let Some(((rank, turn), misses)) = paused.get_mut(at).zip(misses.get(at)) else {
            continue;
        };
        let current = place(pass, *rank, turn.position, *misses);
        // The tenant has borrowed since the job was queued, so that the job moves to its new place.
        if current > last || turn.step(pass, evictions, surge) {
            queue.insert((place(pass, *rank, turn.position, *misses), at));
        }
    }
    for (_, mut turn) in paused {
        // The share stopped the job before, whatever it waits for now.
        turn.is_stopped = true;
        turn.finish(pass);
    }
}

/// Whether the job would miss its deadline on its tenant's share, and might meet it with more.
fn would_miss(pass: &Round<'_>, position: usize) -> bool {
    let Some(state) = pass.jobs.get(position) else {
        return false;
    };
    let is_hopeless = state.rank.is_some_and(|(is_hopeless, _)| is_hopeless);
    let attempt = pass.capacity.dominant_share(position);
    let width = (pass.shares.share(position) / attempt).max(1.0) as u32;
    let (is_late, _) = urgency_within(state, width);
    let usable = pass.capacity.times_usable(position);
    is_late && !is_hopeless && !urgency_within(state, usable).0
}
