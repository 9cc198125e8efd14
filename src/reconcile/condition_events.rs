//! The events of conditions that have turned: one for each obstacle in the table of states, and one for its end. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::events::EventType;

use crate::api::{self, DeadlineJobStatus, reason};
use crate::conditions::messages::{self, LAST_RISK, Says};
use crate::reconcile::events::{DEADLINE_INFEASIBLE, Words};

/// Conditions whose events are written elsewhere.
const ELSEWHERE: [&str; 2] = [api::QUARANTINED, api::ADOPTION_REFUSED];

/// Conditions whose reason alone does not show what happened, so that their events have the type as reason.
const NAMED_BY_TYPE: [&str; 4] = [
    api::DEADLINE_AT_RISK,
    api::VOLUME_NOT_SHARED,
    api::CHECKPOINTS_NOT_DURABLE,
    api::PROGRESS_UNREACHABLE,
];

/// Conditions that any of these follows end with the job, and the event of the job's end suffices.
const ENDS: [&str; 4] = [
    api::SUCCESS_CRITERIA_MET,
    api::COMPLETE,
    api::FAILURE_TARGET,
    api::FAILED,
];

/// A condition whose status differs from that before.
#[derive(Clone, Copy)]
struct Turned<'a> {
    condition: &'a Condition,
    before: Option<&'a Condition>,
}

/// The events of the conditions that differ between two statuses of a job.
pub(super) fn between(old: &DeadlineJobStatus, new: &DeadlineJobStatus) -> Vec<Words> {
    let turned = new.conditions.iter().filter_map(|condition| {
        let mut before = old.conditions.iter();
        let before = before.find(|one| one.type_ == condition.type_);
        let has_turned = before.is_none_or(|before| before.status != condition.status);
        has_turned.then_some(Turned { condition, before })
    });
    let turned: Vec<Turned> = turned.collect();
    let words = turned.iter().filter_map(|one| words(new, *one, &turned));
    words.collect()
}

fn words(new: &DeadlineJobStatus, turned: Turned<'_>, all: &[Turned<'_>]) -> Option<Words> {
    let Turned { condition, before } = turned;
    let has_ended = ENDS.iter().any(|type_| new.is_true(type_));
    let type_ = condition.type_.as_str();
    if ELSEWHERE.contains(&type_) {
        return None;
    }
    let note = messages::without_since(&condition.message).to_owned();
    if type_ == api::DEADLINE_FEASIBLE {
        let is_reported =
            condition.status == "False" && find(all, api::DEADLINE_AT_RISK, "True").is_none();
        return is_reported.then_some((EventType::Warning, DEADLINE_INFEASIBLE, note));
    }
    let row = messages::row(type_, &condition.reason)?;
    let by_type = NAMED_BY_TYPE.into_iter().find(|name| *name == type_);
    let name = match by_type {
        Some(name) if condition.status == "True" => name,
        _ => row.reason,
    };
    match row.says {
        Says::Blocked if is_wanted(condition) || is_cause_of_risk(new, condition) => None,
        Says::Blocked if type_ == api::DEADLINE_AT_RISK => {
            let mut note = format!("{}: {note}", chance(new));
            if let Some(infeasible) = find(all, api::DEADLINE_FEASIBLE, "False") {
                note = format!("{note}; {}", messages::without_since(&infeasible.message));
            }
            Some((EventType::Warning, name, note))
        }
        Says::Blocked => Some((EventType::Warning, name, note)),
        Says::Over if has_ended || before.is_none_or(has_no_end) => None,
        Says::Over => Some((EventType::Normal, name, note)),
        Says::Verdict => None,
    }
}

/// The condition of a type among those that have turned to a status.
fn find<'a>(all: &[Turned<'a>], type_: &str, status: &str) -> Option<&'a Condition> {
    let mut conditions = all.iter().map(|turned| turned.condition);
    conditions.find(|one| one.type_ == type_ && one.status == status)
}

/// Whether the event of a risk has reported why tasks wait. A later reason of the risk has no event.
fn is_cause_of_risk(new: &DeadlineJobStatus, condition: &Condition) -> bool {
    let mut others = new.conditions.iter();
    let risk = others.find(|one| one.type_ == api::DEADLINE_AT_RISK && one.status == "True");
    let is_reported =
        |risk: &Condition| risk.reason == condition.reason && messages::is_first_reason(risk);
    condition.type_ == api::TASKS_PENDING && risk.is_some_and(is_reported)
}

/// Whether the end of a state is no news.
fn has_no_end(before: &Condition) -> bool {
    before.status == "Unknown" || is_wanted(before)
}

/// Whether a person has asked for the state: of one job, or of all jobs of a namespace.
fn is_wanted(condition: &Condition) -> bool {
    let type_ = condition.type_.as_str();
    let is_limit = type_ == api::TASKS_PENDING && condition.reason == reason::PARALLELISM_REACHED;
    is_limit || [api::SUSPENDED, api::CLONES_STOPPED].contains(&type_)
}

fn chance(status: &DeadlineJobStatus) -> String {
    let pocd = match status.pocd {
        Some(pocd) => format!("PoCD is {pocd}"),
        None => "PoCD is unknown".to_owned(),
    };
    match status.calibrated_pocd {
        Some(calibrated) => format!("{pocd}, calibrated {calibrated}"),
        None => pocd,
    }
}

/// The note about a missed deadline.
pub(super) fn missed(status: &DeadlineJobStatus) -> String {
    let mut conditions = status.conditions.iter();
    let missed = conditions.find(|one| one.type_ == api::DEADLINE_MISSED);
    let words = missed.map_or("", |condition| condition.message.as_str());
    let (words, risk) = words.split_at(words.find(LAST_RISK).unwrap_or(words.len()));
    let is_before = missed.is_some_and(|one| one.reason == reason::FAILED_BEFORE_DEADLINE);
    if is_before {
        return words.to_owned();
    }
    let done = status.succeeded;
    match status.is_true(api::FAILURE_TARGET) || status.is_true(api::FAILED) {
        true => format!(
            "{words}: {done} tasks are complete, and shed stops the others, because spec.onMiss is Fail{risk}; \
             submit the job again with a later deadline, or with more capacity"
        ),
        false => format!(
            "{words}: {done} tasks are complete, and the others continue, because spec.onMiss is Continue{risk}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use shed_core::time::Instant;

    use super::*;
    use crate::api::Pocd;
    use crate::conditions::Conditions;

    fn status(states: &[(&str, &str, &str)]) -> DeadlineJobStatus {
        let mut list = Conditions::of(&DeadlineJobStatus::default(), 1, Instant(0));
        for (type_, reason, detail) in states {
            list.say(type_, reason, detail);
        }
        DeadlineJobStatus {
            conditions: list.list,
            pocd: Some(Pocd::nearest(0.412)),
            ..DeadlineJobStatus::default()
        }
    }

    fn reported(old: &DeadlineJobStatus, new: &DeadlineJobStatus) -> Vec<(&'static str, String)> {
        let words = between(old, new);
        words
            .into_iter()
            .map(|(_, name, note)| (name, note))
            .collect()
    }

    const WAITING: (&str, &str, &str) = (api::TASKS_PENDING, reason::INSUFFICIENT_CAPACITY, "");

    #[test]
    fn an_obstacle_and_its_end_are_one_event_each() {
        let (none, waiting) = (status(&[]), status(&[WAITING]));
        let words = "tasks wait for capacity: every slot that they may use is taken; add nodes, raise \
                     --capacity-share, or wait until other attempts finish";
        let begun = [(reason::INSUFFICIENT_CAPACITY, words.to_owned())];
        assert_eq!(reported(&none, &waiting), begun);
        assert_eq!(reported(&waiting, &waiting), []);
        let over = status(&[(api::TASKS_PENDING, reason::NO_TASKS_PENDING, "")]);
        let ended = [(
            reason::NO_TASKS_PENDING,
            "no runnable task is waiting".to_owned(),
        )];
        assert_eq!(reported(&waiting, &over), ended);
        assert_eq!(reported(&none, &over), [], "it never waited");
        let risk = |reason| status(&[(api::DEADLINE_AT_RISK, reason, "")]);
        let unknown = risk(reason::DURATIONS_UNKNOWN);
        assert_eq!(reported(&none, &unknown), []);
        assert_eq!(reported(&unknown, &risk(reason::ON_TRACK)), []);
    }

    #[test]
    fn a_risk_is_named_by_its_condition_with_the_pocd() {
        let risk = status(&[(api::DEADLINE_AT_RISK, reason::TASKS_SLOW, "0.9")]);
        let [(name, note)] = &reported(&status(&[]), &risk)[..] else {
            panic!("not one event");
        };
        assert_eq!(*name, api::DEADLINE_AT_RISK);
        assert!(
            note.starts_with("PoCD is 0.412: the tasks take too long"),
            "{note}"
        );
        assert!(!note.contains("since"), "{note}");
    }

    #[test]
    fn one_cause_is_one_warning() {
        let risk = (api::DEADLINE_AT_RISK, reason::INSUFFICIENT_CAPACITY, "0.9");
        let infeasible = (
            api::DEADLINE_FEASIBLE,
            reason::DEADLINE_INFEASIBLE,
            "the earliest deadline is tomorrow",
        );
        let at_risk = status(&[risk, infeasible]);
        let [(name, note)] = &reported(&status(&[]), &at_risk)[..] else {
            panic!("not one event");
        };
        assert_eq!(*name, api::DEADLINE_AT_RISK);
        let end = "or add capacity; the earliest deadline is tomorrow";
        assert!(note.ends_with(end), "{note}");
        let waiting = status(&[risk, infeasible, WAITING]);
        assert_eq!(reported(&at_risk, &waiting), []);
        // Another cause of the wait is another warning, and so is a deadline that becomes infeasible later.
        let back_off = (api::TASKS_PENDING, reason::BACK_OFF, "00:10");
        let other = reported(&at_risk, &status(&[risk, infeasible, back_off]));
        assert_eq!(other[0].0, reason::BACK_OFF);
        let later = reported(&status(&[risk]), &at_risk);
        assert_eq!(later[0].0, DEADLINE_INFEASIBLE);
        // The event of this risk named another cause.
        let mut list = Conditions::of(
            &status(&[(api::DEADLINE_AT_RISK, reason::TASKS_SLOW, "0.9")]),
            1,
            Instant(60_000),
        );
        list.say(risk.0, risk.1, risk.2);
        let slow = DeadlineJobStatus {
            conditions: list.list.clone(),
            ..status(&[])
        };
        list.say(WAITING.0, WAITING.1, WAITING.2);
        let waiting = DeadlineJobStatus {
            conditions: list.list,
            ..status(&[])
        };
        assert_eq!(reported(&slow, &waiting).len(), 1);
    }

    #[test]
    fn a_missed_deadline_names_the_last_risk_before_the_remedy() {
        let detail = format!("noon{LAST_RISK}tasks wait for capacity");
        let mut missed_status = status(&[
            (api::DEADLINE_MISSED, reason::DEADLINE_PASSED, &detail),
            (api::FAILURE_TARGET, reason::DEADLINE_MISSED, "3 of 4"),
        ]);
        missed_status.succeeded = 3;
        assert_eq!(
            missed(&missed_status),
            "not complete at noon: 3 tasks are complete, and shed stops the others, because spec.onMiss is Fail; the \
             last risk: tasks wait for capacity; submit the job again with a later deadline, or with more capacity"
        );
        missed_status.conditions.pop();
        let continues = missed(&missed_status);
        let end = "spec.onMiss is Continue; the last risk: tasks wait for capacity";
        assert!(continues.ends_with(end), "{continues}");
    }

    #[test]
    fn the_end_of_a_job_is_no_end_of_its_obstacles() {
        let over = [
            (api::TASKS_PENDING, reason::NO_TASKS_PENDING, ""),
            (api::SUCCESS_CRITERIA_MET, reason::COMPLETIONS_REACHED, "4"),
        ];
        assert_eq!(reported(&status(&[WAITING]), &status(&over)), []);
    }

    #[test]
    fn a_state_that_a_person_has_asked_for_is_no_event() {
        let limited = status(&[(api::TASKS_PENDING, reason::PARALLELISM_REACHED, "")]);
        let over = status(&[(api::TASKS_PENDING, reason::NO_TASKS_PENDING, "")]);
        assert_eq!(reported(&status(&[]), &limited), []);
        assert_eq!(reported(&limited, &over), []);
    }

    /// Notes of obstacles name what the user can do.
    #[test]
    fn each_obstacle_of_the_table_has_an_event() {
        for row in messages::TABLE {
            if row.says != Says::Blocked {
                continue;
            }
            for type_ in row.conditions {
                let new = status(&[(type_, row.reason, "the detail")]);
                let events = between(&status(&[]), &new);
                let expected = usize::from(!is_wanted(&new.conditions[0]));
                assert_eq!(events.len(), expected, "{type_} {}", row.reason);
                let help = row.help.replace("{}", "the detail");
                assert!(
                    events.iter().all(|(_, _, note)| note.contains(&help)),
                    "{events:?}"
                );
            }
        }
    }
}
