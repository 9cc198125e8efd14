//! The conditions of a job and their messages. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shed_core::time::Instant;

use crate::api::{self, DeadlineJobStatus, reason};
use crate::clock;

pub mod messages;

/// The status of a job whose specification can't be carried out.
pub fn invalid(
    old: &DeadlineJobStatus,
    generation: Option<i64>,
    message: &str,
    now: Instant,
) -> DeadlineJobStatus {
    let mut list = Conditions::of(old, generation.unwrap_or(0), now);
    list.say(api::FAILURE_TARGET, reason::INVALID_SPEC, message);
    list.say(api::FAILED, reason::INVALID_SPEC, message);
    DeadlineJobStatus {
        observed_generation: generation,
        phase: Some("Failed".to_owned()),
        conditions: list.list,
        ..old.clone()
    }
}

/// The status of a job that waits because the operator's memory budget does not admit it.
pub fn crowded(
    old: &DeadlineJobStatus,
    generation: Option<i64>,
    now: Instant,
) -> DeadlineJobStatus {
    let mut list = Conditions::of(old, generation.unwrap_or(0), now);
    list.say(api::ATTEMPTS_BLOCKED, reason::OPERATOR_MEMORY, "");
    DeadlineJobStatus {
        phase: Some("Pending".to_owned()),
        conditions: list.list,
        ..old.clone()
    }
}

/// The conditions of a status while they are built.
pub(crate) struct Conditions {
    pub(crate) list: Vec<Condition>,
    generation: i64,
    now: Instant,
    /// The job had finished before, so its conditions keep their old messages.
    is_final: bool,
}

impl Conditions {
    /// The conditions of a status.
    pub(crate) fn of(old: &DeadlineJobStatus, generation: i64, now: Instant) -> Self {
        let ledger = old.ledger.as_ref();
        Self {
            list: old.conditions.clone(),
            generation,
            now,
            is_final: ledger.is_some_and(|ledger| ledger.finished),
        }
    }

    /// Sets a condition with the message of its row.
    pub(crate) fn say(&mut self, type_: &str, reason: &str, detail: &str) {
        self.say_since(type_, reason, detail, self.now);
    }

    /// The same, if it has been so since.
    pub(crate) fn say_since(&mut self, type_: &str, reason: &str, detail: &str, since: Instant) {
        // A test checks that every reason has a row. Without one the detail becomes the message.
        let Some(row) = messages::row(type_, reason) else {
            return self.put(type_, "True", reason, detail);
        };
        let is_it = |old: &&Condition| {
            old.type_ == type_ && old.status == row.status && old.reason == reason
        };
        let before = self.list.iter().find(is_it);
        if self.is_final && before.is_some() {
            return;
        }
        let before = before.map(|old| old.message.as_str());
        let message = row.words(detail, since, before);
        self.put(type_, row.status, reason, &message);
    }

    /// Sets a condition; its transition time moves with its status only.
    fn put(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let fresh = Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: Some(self.generation),
            last_transition_time: clock::time(self.now),
        };
        match self
            .list
            .iter_mut()
            .find(|condition| condition.type_ == type_)
        {
            None => self.list.push(fresh),
            Some(old) if old.status != status => *old = fresh,
            Some(old) => {
                old.reason = fresh.reason;
                old.message = fresh.message;
                old.observed_generation = fresh.observed_generation;
            }
        }
    }

    /// Adds a cause to the messages of conditions that are there.
    pub(crate) fn add(&mut self, types: [&str; 2], words: &str) {
        let conditions = self.list.iter_mut();
        let conditions = conditions.filter(|one| types.contains(&&*one.type_));
        for condition in conditions.filter(|one| !one.message.ends_with(words)) {
            condition.message.push_str(words);
        }
    }

    /// Marks a state as over, if its condition exists and is true or unknown.
    pub(crate) fn clear(&mut self, type_: &str, reason: &str, detail: &str) {
        let mut conditions = self.list.iter();
        let is_open = |one: &Condition| one.type_ == type_ && one.status != "False";
        if conditions.any(is_open) {
            self.say(type_, reason, detail);
        }
    }
}
