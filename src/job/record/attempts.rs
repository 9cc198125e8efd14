//! Lines about attempts: those of the ledger, those that ended in this step, and those that the record has from
//! before.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use shed_core::plan::Outcome;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState as State, Resume, ResumePoint,
};
use shed_core::time::Instant;

use crate::api::{AttemptEntry, AttemptRecord, AttemptState, Decimal};
use crate::clock;
use crate::cluster::pod::AttemptId;
use crate::job::facts;
use crate::job::notice::Notice;
use crate::job::record::Input;

/// Of a record that another client has edited, no more lines are read.
const OLD_MAX: usize = 128;

/// How much a line shows. Lines with a smaller value are left out last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Significance {
    /// The attempt is live, and its expected end was worth a computation.
    Forecast,
    /// It is live, and its task had several attempts.
    Rivals,
    /// It has ended, and not as the only attempt of a task.
    Eventful,
    /// It runs, the only attempt of its task.
    Running,
    /// It won, the only attempt of its task.
    Plain,
    /// It has not started, the only attempt of its task.
    Pending,
}

impl Significance {
    /// What a line of this state shows. `is_rival`: its task had several attempts.
    pub(super) fn of(state: AttemptState, is_forecast: bool, is_rival: bool) -> Self {
        match state {
            AttemptState::Pending | AttemptState::Running if is_forecast => Self::Forecast,
            AttemptState::Pending | AttemptState::Running if is_rival => Self::Rivals,
            AttemptState::Running => Self::Running,
            AttemptState::Pending => Self::Pending,
            AttemptState::Won if !is_rival => Self::Plain,
            _ => Self::Eventful,
        }
    }

    /// Whether it is the line of a task that had only this attempt, and nothing happened to it.
    pub(super) fn is_plain(self) -> bool {
        self >= Self::Running
    }
}

/// Tasks that had several attempts, by the lines of a record.
pub(super) fn rivals<'a>(lines: impl Iterator<Item = &'a AttemptRecord>) -> BTreeSet<i32> {
    let further = lines.filter(|line| line.attempt > 0);
    further.map(|line| line.task).collect()
}

/// Order of lines, the first to keep first: how much they show, then the latest end, then the task.
pub(super) type Order = (Significance, Reverse<Option<Instant>>, AttemptId);

/// Where a line comes from.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Ledger(AttemptState),
    /// It ended in this step.
    Ended(AttemptState, Instant),
    /// It is in the record before.
    Before(&'a AttemptRecord),
}

/// The lines of at most this number of attempts, by task and number.
pub(super) fn listed(input: &Input<'_>, most: usize) -> Vec<AttemptRecord> {
    let mut found = Found::new(input).all();
    if found.len() > most {
        found.select_nth_unstable_by_key(most, |(order, _)| *order);
        found.truncate(most);
    }
    found.sort_unstable_by_key(|((.., id), _)| *id);
    let lines = found.into_iter();
    lines
        .map(|((.., id), source)| line(input, id, source))
        .collect()
}

/// What is known of the job's attempts.
struct Found<'a> {
    input: &'a Input<'a>,
    old: &'a [AttemptRecord],
    /// Attempts that ended in this step.
    ended: BTreeMap<AttemptId, AttemptState>,
    forecast: BTreeSet<AttemptId>,
    rivals: BTreeSet<i32>,
}

impl<'a> Found<'a> {
    fn new(input: &'a Input<'a>) -> Self {
        let old = input.old.map_or(&[][..], |old| &old.attempts);
        let old = &old[..old.len().min(OLD_MAX)];
        let ends = input.report.into_iter().flat_map(|report| &report.ends);
        Self {
            input,
            old,
            ended: input.notices.iter().filter_map(ended).collect(),
            forecast: ends.map(|end| (end.task.0, end.attempt.0)).collect(),
            rivals: rivals(old.iter()),
        }
    }

    fn all(&self) -> Vec<(Order, Source<'a>)> {
        let mut all: Vec<_> = self.before().collect();
        all.extend(self.now_ended());
        all.extend(self.in_ledger());
        all
    }

    fn in_ledger(&self) -> impl Iterator<Item = (Order, Source<'a>)> {
        let tasks = self.input.ledger.tasks.values();
        let attempts = tasks.flat_map(|task| task.attempts.iter().map(|it| (task.index, it)));
        attempts.map(|(task, entry)| {
            let id = (task, entry.number);
            let state = state(entry, facts::attempt_of(self.input.facts, id));
            (self.order(id, state, None), Source::Ledger(state))
        })
    }

    fn now_ended(&self) -> impl Iterator<Item = (Order, Source<'a>)> {
        self.ended.iter().map(|(&id, &state)| {
            let seen = facts::attempt_of(self.input.facts, id).and_then(finished);
            let end = seen.unwrap_or(self.input.now());
            (self.order(id, state, Some(end)), Source::Ended(state, end))
        })
    }

    /// Lines of attempts that have ended before, and that nothing newer is known of.
    fn before(&self) -> impl Iterator<Item = (Order, Source<'a>)> {
        self.old.iter().filter_map(|line| {
            let id = (line.task.try_into().ok()?, line.attempt.try_into().ok()?);
            let end = line.end_time.as_ref().map(clock::instant)?;
            let is_known =
                self.ended.contains_key(&id) || self.input.ledger.attempt(id.0, id.1).is_some();
            (!is_known && !line.state.is_live())
                .then(|| (self.order(id, line.state, Some(end)), Source::Before(line)))
        })
    }

    fn order(&self, id: AttemptId, state: AttemptState, end: Option<Instant>) -> Order {
        let is_forecast = self.forecast.contains(&id);
        let significance = Significance::of(state, is_forecast, self.is_rival(id));
        (significance, Reverse(end), id)
    }

    fn is_rival(&self, (task, _): AttemptId) -> bool {
        let ledgers = [self.input.ledger, &self.input.view.ledger];
        let mut entries = ledgers.iter().filter_map(|ledger| ledger.tasks.get(&task));
        let is_listed = i32::try_from(task).is_ok_and(|task| self.rivals.contains(&task));
        is_listed || entries.any(|entry| entry.next_attempt > 1)
    }
}

fn ended(notice: &Notice) -> Option<(AttemptId, AttemptState)> {
    match notice {
        Notice::Won { id, .. } => Some((*id, AttemptState::Won)),
        Notice::Counted { id, outcome, .. } => Some((
            *id,
            match outcome {
                Outcome::Superseded => AttemptState::Stopped,
                Outcome::Failed | Outcome::CloneFailed => AttemptState::Failed,
                Outcome::Disrupted => AttemptState::Disrupted,
                Outcome::Late => AttemptState::Late,
            },
        )),
        _ => None,
    }
}

/// The state of an attempt that is not counted yet. One that was just launched has no facts.
fn state(entry: &AttemptEntry, facts: Option<&AttemptSnapshot>) -> AttemptState {
    match facts.map(|facts| facts.state) {
        _ if entry.kill.is_some() => AttemptState::Stopped,
        None | Some(State::Launching | State::Pending | State::Stuck { .. }) => {
            AttemptState::Pending
        }
        Some(State::Running | State::Succeeded { .. } | State::Failed { .. } | State::Lost) => {
            AttemptState::Running
        }
    }
}

fn finished(attempt: &AttemptSnapshot) -> Option<Instant> {
    match attempt.state {
        State::Succeeded { finished } | State::Failed { finished, .. } => Some(finished),
        _ => None,
    }
}

fn line(input: &Input<'_>, id: AttemptId, source: Source<'_>) -> AttemptRecord {
    let (state, end) = match source {
        Source::Before(line) => return line.clone(),
        Source::Ledger(state) => (state, None),
        Source::Ended(state, end) => (state, Some(end)),
    };
    let (task, attempt) = (number(id.0), number(id.1));
    let mut old = input.old.into_iter().flat_map(|old| &old.attempts);
    let old = old.find(|line| (line.task, line.attempt) == (task, attempt));
    let entry = input.ledger.attempt(id.0, id.1);
    let entry = entry.or_else(|| input.view.ledger.attempt(id.0, id.1));
    let facts = facts::attempt_of(input.facts, id);
    let pod = input.view.pods.get(&id);
    let node = pod.and_then(|pod| pod.node.as_deref());
    let node = node.or(entry.and_then(|entry| Some(&*entry.node.as_ref()?.name)));
    let report = pod.and_then(|pod| input.view.reports.get(&pod.uid));
    let resumes = input.facts.rules.resume != Resume::None;
    let checkpoint = facts.and_then(|facts| facts.checkpoint.as_ref());
    let mut ends = input.report.into_iter().flat_map(|report| &report.ends);
    let expected = ends.find(|end| (end.task.0, end.attempt.0) == id);
    let of_old = |field: fn(&AttemptRecord) -> Option<Decimal>| old.and_then(field);
    AttemptRecord {
        task,
        attempt,
        kind: entry.map_or(AttemptKind::Original, |entry| entry.kind),
        node: node
            .map(str::to_owned)
            .or_else(|| old.and_then(|old| old.node.clone())),
        start_time: facts
            .and_then(|facts| facts.started)
            .map(clock::time)
            .or_else(|| old.and_then(|old| old.start_time.clone())),
        end_time: end.map(clock::time),
        progress: report
            .map(|report| Decimal::nearest(report.progress.last))
            .or_else(|| of_old(|old| old.progress)),
        resumed_from: entry
            .and_then(|entry| entry.resume.as_deref())
            .map(progress),
        resume_point: checkpoint
            .filter(|_| resumes)
            .map(progress)
            .or_else(|| of_old(|old| old.resume_point)),
        estimated_end_time: expected
            .filter(|_| state.is_live())
            .map(|end| clock::time(end.at)),
        state,
    }
}

fn progress(point: &ResumePoint) -> Decimal {
    Decimal::nearest(point.progress)
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
