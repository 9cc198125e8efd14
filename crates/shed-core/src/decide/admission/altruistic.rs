//! Carbyne (Grandl et al., OSDI 2016), simplified: a job lends what it does not need for its own end. Phases that can
//! wait get nothing within the fair shares, so that their attempts compete for what is left.

use std::collections::{BTreeMap, BTreeSet};

use crate::capacity::add;
use crate::decide::evict::Evictions;
use crate::decide::order::{Rank, SLOT, ranks};
use crate::policy::Order;
use crate::round::{Number, Round};

use super::{Surge, Turn};

/// Serves the phases that cannot wait for a slot's length, each within what DRF gives it. Returns the turns, which
/// continue when the job's rank comes up.
pub(super) fn serve_shares<'a>(
    pass: &mut Round<'a>,
    evictions: &mut Evictions,
    surge: &mut Surge,
) -> BTreeMap<usize, Turn<'a>> {
    let mut jobs = ranks(pass, Order::Drf);
    jobs.sort();
    let turn = |(rank, position): (Rank<'a>, usize)| Some((rank, Turn::new(pass, position)?));
    let jobs: Vec<(Rank<'a>, Turn<'a>)> = jobs.into_iter().filter_map(turn).collect();
    let shares = fair_shares(pass, &jobs);
    let mut turns = BTreeMap::new();
    for ((_, mut turn), share) in jobs.into_iter().zip(shares) {
        let can_wait = pass.phase_slack(turn.position) >= SLOT;
        let share = if can_wait { 0 } else { share };
        for _ in 0..share {
            if !turn.step(pass, evictions, surge) {
                break;
            }
        }
        turns.insert(turn.position, turn);
    }
    turns
}

/// How many attempts of each job the free capacity of all nodes together holds, if one after another goes to the job
/// with the least dominant share.
fn fair_shares(pass: &Round<'_>, jobs: &[(Rank<'_>, Turn<'_>)]) -> Vec<u32> {
    let mut given = vec![0; jobs.len()];
    let mut queue = BTreeSet::new();
    for (at, ((_, _, share, ..), _)) in jobs.iter().enumerate() {
        queue.insert((*share, at));
    }
    let Some(mut rest) = pass.capacity.rest_after(std::iter::empty()) else {
        return given;
    };
    while let Some((Number(share), at)) = queue.pop_first() {
        let (Some((_, turn)), Some(given)) = (jobs.get(at), given.get_mut(at)) else {
            continue;
        };
        let position = turn.position;
        let demand = pass.capacity.demands.get(position);
        let demand = demand.filter(|_| pass.capacity.fits_in(&rest, position));
        if let Some(demand) = demand.filter(|_| *given < turn.slots) {
            add(&mut rest, demand, -1);
            *given += 1;
            let share = share + pass.capacity.dominant_share(position);
            queue.insert((Number(share), at));
        }
    }
    given
}
