//! The places of jobs in the order of service, each by itself: for executors that keep a queue of waiting jobs and fill
//! free slots from it. It applies to policies without clones, and to orders that rank a job by its own facts alone.

use crate::decide::ageing::aged_at;
use crate::decide::opened;
use crate::decide::order::{Tier, ranks};
use crate::ids::JobKey;
use crate::memory::Memory;
use crate::policy::{Order, Policy};
use crate::round::{Appointment, Changed, FindingsCache, Number};
use crate::snapshot::Snapshot;
use crate::time::Instant;

/// A job's place in the order of service. It holds until the job's facts change or its appointment comes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    tier: Tier,
    /// Independent of the time at which the job was looked at.
    urgency: i64,
    number: Number,
    submitted: Instant,
    key: JobKey,
}

/// A job that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Absent if the job must get no attempt now.
    pub place: Option<Place>,
    /// When the job must be looked at again.
    pub appointment: Appointment,
    /// From this time on the job is served first, within the share of late jobs.
    pub aged_at: Option<Instant>,
}

/// Whether jobs have places that do not depend on other jobs.
pub fn has_places(policy: &Policy) -> bool {
    let by_own_facts = matches!(
        policy.order,
        Order::Fifo | Order::EarliestDeadline | Order::LeastSlack | Order::Srpt | Order::Svf
    );
    policy.speculation.is_none() && by_own_facts
}

/// Looks at the jobs of the snapshot alone, and learns from them and from the jobs that are `gone`.
pub fn places(
    snapshot: &Snapshot,
    memory: &mut Memory,
    policy: &Policy,
    gone: Vec<JobKey>,
) -> Vec<Seen> {
    let mut round = opened(
        snapshot,
        memory,
        policy,
        FindingsCache::default(),
        Changed::All,
    );
    round.gone = Some(gone);
    let now = snapshot.now;
    let by_slack = policy.order == Order::LeastSlack;
    let mut places = vec![None; round.jobs.len()];
    for ((tier, urgency, number, submitted, key), position) in ranks(&round, policy.order) {
        let urgency = match urgency {
            i64::MAX => urgency,
            slack if by_slack => slack.saturating_add(now.0),
            urgency => urgency,
        };
        let place = Place {
            tier,
            urgency,
            number,
            submitted,
            key: key.clone(),
        };
        // A job without slack left is hopeless from then on.
        if by_slack
            && tier == Tier::Usual
            && let Some(view) = round.jobs.get_mut(position)
        {
            view.judge_at(Some(Instant(urgency)).filter(|&at| at > now));
        }
        if let Some(slot) = places.get_mut(position) {
            *slot = Some(place);
        }
    }
    let aged = round
        .jobs
        .iter()
        .map(|view| aged_at(view).filter(|_| by_slack));
    let aged: Vec<Option<Instant>> = aged.collect();
    let (_, update, kept) = round.finish();
    update.enter(memory);
    let seen = places.into_iter().zip(kept.appointments()).zip(aged);
    seen.map(|((place, appointment), aged_at)| Seen {
        place,
        appointment,
        aged_at,
    })
    .collect()
}
