//! The last decisions about clones and stops.

use shed_core::ids::JobKey;
use shed_core::plan::{Alternative, CloneReport, Finding, LaunchReason, Refusal, RefusalReason};
use shed_core::snapshot::{AttemptKind, KillKind, SpeculationMode};

use crate::api::{Decimal, DecisionRecord, Verdict};
use crate::clock;
use crate::job::notice::Notice;
use crate::job::record::Input;

/// A record has at most this number of decisions.
const DECISIONS_MAX: usize = 16;
/// Of the refusals of one planning pass, the first of the policy's order are recorded. They are mostly the same in
/// the next pass.
const REFUSALS_MAX: usize = 8;
/// Of a record that another client has edited, no more decisions are read.
const OLD_MAX: usize = 2 * DECISIONS_MAX;

/// The decisions of the record before, those of this step, and the refusals of the last planning pass.
pub(super) fn continued(input: &Input<'_>) -> Vec<DecisionRecord> {
    let old = input.old.map_or(&[][..], |old| &old.decisions);
    let mut list = old[old.len().saturating_sub(OLD_MAX)..].to_vec();
    for decision in refused(input).chain(observed(input)) {
        if !is_repeated(&list, &decision) {
            list.push(decision);
        }
    }
    list.extend(granted(input).chain(stopped(input)));
    while list.len() > DECISIONS_MAX {
        let _ = drop_oldest(&mut list);
    }
    list
}

/// Takes out the decision that shows least: the oldest one that launched and stopped nothing, or else the oldest.
pub(super) fn drop_oldest(list: &mut Vec<DecisionRecord>) -> Option<DecisionRecord> {
    if list.is_empty() {
        return None;
    }
    let at = list.iter().position(|one| !is_act(one)).unwrap_or(0);
    Some(list.remove(at))
}

/// Whether the decision launched or stopped an attempt.
pub(super) fn is_act(decision: &DecisionRecord) -> bool {
    matches!(decision.verdict, Verdict::Granted | Verdict::Stopped)
}

/// Whether the list has this decision already, and nothing was done for its task since.
fn is_repeated(list: &[DecisionRecord], decision: &DecisionRecord) -> bool {
    let of_task = list.iter().rev().filter(|one| one.task == decision.task);
    let mut since_act = of_task.take_while(|one| !is_act(one));
    since_act.any(|one| one.verdict == decision.verdict && one.reason == decision.reason)
}

fn decision(input: &Input<'_>, task: u32, verdict: Verdict, reason: String) -> DecisionRecord {
    DecisionRecord {
        time: clock::time(input.now()),
        task: i32::try_from(task).unwrap_or(i32::MAX),
        verdict,
        reason,
        gain: None,
        price: None,
        alternative: None,
    }
}

/// Stragglers that got no clone. The report may be older than the step.
fn refused<'a>(input: &'a Input<'_>) -> impl Iterator<Item = DecisionRecord> + 'a {
    let refusals = input.report.into_iter().flat_map(|report| &report.refusals);
    let stands = |refusal: &&Refusal| {
        let lives = input.ledger.tasks.contains_key(&refusal.task.0);
        lives && !input.facts.has_ended(refusal.task) && refusal.why != RefusalReason::Observe
    };
    let refusals = refusals.filter(stands).take(REFUSALS_MAX);
    refusals.map(|refusal| {
        let reason = format!("{:?}", refusal.why);
        decision(input, refusal.task.0, Verdict::Refused, reason)
    })
}

/// Clones that a job which only observes would have got.
fn observed<'a>(input: &'a Input<'_>) -> impl Iterator<Item = DecisionRecord> + 'a {
    let observes = input.facts.rules.speculation == SpeculationMode::Observe;
    let report = input.report.filter(|_| observes);
    let clones = report.into_iter().flat_map(|report| &report.clones);
    let clones = clones.filter(|clone| !input.facts.has_ended(clone.task));
    clones.take(DECISIONS_MAX).map(|clone| {
        let reason = "Observe".to_owned();
        weighed(
            input,
            decision(input, clone.task.0, Verdict::Observed, reason),
            clone,
        )
    })
}

/// Clones that this step launches.
fn granted<'a>(input: &'a Input<'_>) -> impl Iterator<Item = DecisionRecord> + 'a {
    let launches = input.notices.iter().filter_map(|notice| match notice {
        Notice::Launched { launch, .. } if launch.kind == AttemptKind::Clone => Some(launch),
        _ => None,
    });
    let known = || input.report.into_iter().flat_map(|report| &report.clones);
    launches.take(DECISIONS_MAX).map(move |launch| {
        let (reason, gain) = words(&launch.reason);
        let mut decision = decision(input, launch.task.0, Verdict::Granted, reason.to_owned());
        decision.gain = gain.map(Decimal::nearest);
        match known().find(|clone| clone.task == launch.task) {
            Some(clone) => weighed(input, decision, clone),
            None => decision,
        }
    })
}

/// The reason of a clone, and by how much it raises the job's PoCD.
fn words(reason: &LaunchReason) -> (&'static str, Option<f64>) {
    match *reason {
        LaunchReason::Admitted => ("Admitted", None),
        LaunchReason::Straggler {
            pocd_before,
            pocd_after,
        } => ("Straggler", Some(pocd_after - pocd_before)),
        LaunchReason::Rule {
            finding,
            pocd_before,
            pocd_after,
        } => {
            let gain = pocd_before.zip(pocd_after);
            (name(&finding), gain.map(|(before, after)| after - before))
        }
    }
}

fn name(finding: &Finding) -> &'static str {
    match finding {
        Finding::EndsLater { .. } => "EndsLater",
        Finding::Saves { .. } => "Saves",
        Finding::Overdue { .. } => "Overdue",
        Finding::Copies { .. } => "Copies",
        Finding::Late { .. } => "Late",
    }
}

/// The decision with the figures of the clone.
fn weighed(input: &Input<'_>, decision: DecisionRecord, clone: &CloneReport) -> DecisionRecord {
    let trade = clone.trade.as_ref();
    let gain = trade.map_or(clone.pocd_gain, |trade| trade.gain);
    let alternative = trade.and_then(|trade| trade.alternative.as_ref());
    DecisionRecord {
        gain: Some(Decimal::nearest(gain)),
        price: trade.map(|trade| Decimal::nearest(trade.price)),
        alternative: alternative.map(|other| describe(input, other)),
        ..decision
    }
}

/// In words, without the names of other jobs, because readers of this job may not read those.
fn describe(input: &Input<'_>, alternative: &Alternative) -> String {
    let owner = |job: &JobKey| match *job == input.facts.key {
        true => "this job",
        false => "another job",
    };
    match alternative {
        Alternative::Clones {
            job,
            clones,
            gain,
            price,
        } => format!(
            "clones of {}: {clones}, gain {gain:.3} each, price {price:.3}",
            owner(job)
        ),
        Alternative::Attempt { job, gain } => {
            format!("waiting attempt of {}, gain {gain:.3}", owner(job))
        }
        Alternative::Wait { gain } => format!("wait for the next report, gain {gain:.3}"),
    }
}

/// Attempts that this step stops for another attempt. Stops that follow from a win or from the job's end are not
/// listed: the attempts show them.
fn stopped<'a>(input: &'a Input<'_>) -> impl Iterator<Item = DecisionRecord> + 'a {
    let stops = input.notices.iter().filter_map(|notice| match notice {
        Notice::Killed { id, kind } if is_decision(*kind) => Some((*id, *kind)),
        _ => None,
    });
    let known = || input.report.into_iter().flat_map(|report| &report.kills);
    stops.take(DECISIONS_MAX).map(move |(id, kind)| {
        let mut kills = known();
        let known = kills.find(|kill| (kill.task.0, kill.attempt.0) == id && kill.kind == kind);
        DecisionRecord {
            price: known.and_then(|kill| kill.miss_added).map(Decimal::nearest),
            ..decision(input, id.0, Verdict::Stopped, format!("{kind:?}"))
        }
    })
}

fn is_decision(kind: KillKind) -> bool {
    match kind {
        KillKind::Prune
        | KillKind::Evict
        | KillKind::Replace
        | KillKind::Restart
        | KillKind::Preempt
        | KillKind::Abandon => true,
        KillKind::Settle | KillKind::Suspend | KillKind::JobEnd | KillKind::Surplus => false,
    }
}
