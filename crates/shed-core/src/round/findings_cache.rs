//! The planner's findings about each job, kept from pass to pass, so that the cost of a pass follows what changed.
//!
//! A pass *looks* at a job, which means that it estimates each attempt and has the policy judge the job, only
//!
//! - if the job has urgent [`News`] and the last look was some time ago: [`PATIENCE`] of the job's usual task time or
//!   of its slack, whichever is less; half of that suffices in a pass that is made anyway,
//! - if it has other news and the last look was [`USUAL_TIMES`] as long ago,
//! - if no time of the job was known and an attempt has ended or reports for the first time,
//! - if its user has changed it, or asks for the deadline that it could keep,
//! - if its next moment of interest has come: its deadline, the end of a back-off, or the moment that the policy named,
//! - or if the job is new, or the nodes have changed.
//!
//! Between two looks the following is exact in every pass: which tasks wait, run or have ended, the capacity that the
//! job holds, and its slack. These are as of the last look: the predicted ends of attempts, their probabilities of a
//! miss, the job's distribution, its PoCD, and the policy's belief. The policy acts on a job only in a pass that looks
//! at it.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::capacity::UnusableNodes;
use crate::ids::{JobKey, NodeName};
use crate::round::estimates::AttemptEstimate;
use crate::round::findings::JobFindings;
use crate::round::job::JobView;
use crate::round::specification::Specification;
use crate::snapshot::{AttemptSnapshot, JobSnapshot, Snapshot};
use crate::time::{Instant, Span};

/// The share of a job's usual task time, and of its slack, for which its urgent news wait at most.
const PATIENCE: f64 = 0.02;

/// The news that one of many attempts has started or ended waits this many times as long as urgent news.
const USUAL_TIMES: i64 = 3;

/// Urgent news wait no longer than this, however long tasks take.
pub(crate) const REST_MAX: Span = Span::from_seconds(600);

/// Close to the deadline the share is that of this part of the usual task time.
const LEAST_SCALE: f64 = 0.25;

/// The jobs of a pass whose facts may differ from those of the pass before, by position.
#[derive(Debug, Clone, Copy)]
pub enum Changed<'n> {
    /// All of them.
    All,
    /// Those that are marked.
    Marked(&'n [bool]),
}

impl Changed<'_> {
    /// Whether the job at that position is one of them.
    pub(crate) fn has(self, position: usize) -> bool {
        match self {
            Self::All => true,
            Self::Marked(marked) => marked.get(position).copied().unwrap_or(true),
        }
    }
}

/// The news of a job since its last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum News {
    /// No fact has changed.
    #[default]
    None,
    /// Facts have changed, which the policy will rarely act on at once.
    Usual,
    /// An attempt was launched, or reports for the first time. At launch a clone hedges best, and the first report
    /// shows how fast the attempt is.
    Urgent,
    /// The first report or end in a job of unknown times. Until it is looked at, the job counts with guesses: its
    /// demand is remembered by its deadline.
    FirstTime,
}

/// When a job must be looked at. A pass that is made shortly before looks at it as well, so that the looks at many
/// jobs need few passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appointment {
    /// The last look.
    pub(crate) looked: Instant,
    /// How long urgent news of the job wait after it.
    rest: Span,
    /// When the policy needs to judge the job again.
    next: Option<Instant>,
    /// When the job's facts change by themselves.
    until: Option<Instant>,
    /// Whether a time of the job is known.
    knows_times: bool,
}

impl Appointment {
    /// The appointment of a job that is looked at now.
    pub(crate) fn made(now: Instant) -> Self {
        Self {
            looked: now,
            ..Self::default()
        }
    }

    /// The policy needs to judge the job then, if that is sooner than known.
    pub(crate) fn judge_at(&mut self, at: Option<Instant>) {
        self.next = self.next.into_iter().chain(at).min();
    }

    /// The job's facts change at these times.
    pub(crate) fn watch(&mut self, moments: impl Iterator<Item = Instant>) {
        self.until = self.until.into_iter().chain(moments).min();
    }

    /// When the next pass must be made for the job.
    pub fn at(&self, news: News) -> Option<Instant> {
        let news = self.rest_of(news).map(|rest| self.looked.plus(rest));
        let moments = self.until.into_iter().chain(self.next);
        moments.chain(news).min()
    }

    /// The news that a live attempt is; `shown` are the estimates of the task's attempts.
    pub(crate) fn news_of(&self, attempt: &AttemptSnapshot, shown: &[AttemptEstimate]) -> News {
        let known = shown.iter().find(|known| known.number == attempt.number);
        let had_progress = known.is_some_and(|known| known.has_progress);
        match (known, attempt.progress.is_some() && !had_progress) {
            (_, true) => self.of_time(News::Urgent),
            (None, false) => News::Urgent,
            (Some(_), false) => News::None,
        }
    }

    /// How long such news wait after the last look.
    fn rest_of(&self, news: News) -> Option<Span> {
        match news {
            News::None => None,
            News::Usual => Some(Span(self.rest.0.saturating_mul(USUAL_TIMES))),
            News::Urgent => Some(self.rest),
            News::FirstTime => Some(Span(0)),
        }
    }

    /// What such news are if an attempt shows a time of the job.
    pub fn of_time(&self, news: News) -> News {
        match self.knows_times {
            true => news,
            false => News::FirstTime,
        }
    }

    /// Whether a pass looks at the job.
    pub fn is_due(&self, now: Instant, news: News) -> bool {
        let age = now.since(self.looked);
        let times = |span: Span, by: i64| span.0.saturating_mul(by);
        let is_soon = |next: Instant| times(age, 4) >= times(next.since(self.looked), 3);
        age < Span(0)
            || self.until.is_some_and(|at| at <= now)
            || self.next.is_some_and(is_soon)
            || self
                .rest_of(news)
                .is_some_and(|rest| times(age, 2) >= rest.0)
    }
}

/// How a pass came to its view of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Origin {
    /// It looked at the job.
    #[default]
    Looked,
    /// It has the findings of the last look; the job had this position in the pass before.
    Kept(usize),
}

/// The findings about one job between two passes.
#[derive(Debug)]
struct Kept {
    key: JobKey,
    submitted: Instant,
    /// Their rank has the time at which the job has no slack left.
    found: Box<JobFindings>,
}

impl Kept {
    /// The findings at the end of a pass.
    fn of(now: Instant, view: JobView<'_>) -> Self {
        let (job, has_run, patience) = (view.job, view.has_run(), view.patience());
        let mut found = view.into_findings();
        found
            .specification
            .get_or_insert_with(|| Box::new(Specification::of(job)));
        if found.origin == Origin::Looked {
            found.appointment.rest = patience;
        }
        found.appointment.knows_times = found.estimate.mean_run.is_some();
        found.is_new &= !has_run;
        found.rank = found.rank.map(|rank| shifted(rank, now.since(Instant(0))));
        Self {
            key: job.key.clone(),
            submitted: job.submitted,
            found,
        }
    }

    /// The findings in a later pass; the job had the position `at` in the pass before.
    fn later(
        mut self,
        now: Instant,
        (at, job): (usize, &JobSnapshot),
        has_changed: bool,
        unusable: &UnusableNodes,
    ) -> Box<JobFindings> {
        self.found.origin = Origin::Kept(at);
        self.found.pass(now, job, has_changed, unusable);
        self.found
    }

    /// The order of submission, then of keys.
    fn order(&self, job: &JobSnapshot) -> Ordering {
        let by_submission = self.submitted.cmp(&job.submitted);
        // Mostly the same text, not only an equal one.
        by_submission.then_with(|| match Arc::ptr_eq(&self.key.0, &job.key.0) {
            true => Ordering::Equal,
            false => self.key.cmp(&job.key),
        })
    }

    /// Whether the pass must look at the job, as far as is known before its tasks are counted.
    fn is_due(&self, now: Instant, job: &JobSnapshot, has_changed: bool) -> bool {
        let least = match has_changed {
            true => News::Usual,
            false => News::None,
        };
        let found = &self.found;
        let is_same = |known: &Specification| known.is_of(job);
        found.appointment.is_due(now, found.news.max(least))
            || has_changed
                && (job.asks_feasibility || !found.specification.as_deref().is_some_and(is_same))
    }

    /// When the job must be looked at, as far as is known now.
    fn due(&self) -> Option<Instant> {
        self.found.appointment.at(self.found.news)
    }
}

/// The findings about the jobs of the last pass, in its order.
#[derive(Debug, Default)]
pub(crate) struct FindingsCache {
    jobs: Vec<Kept>,
    nodes: Vec<NodeName>,
    unusable: UnusableNodes,
}

impl FindingsCache {
    /// The jobs of the snapshot, and the keys of jobs that are gone, unless every job is looked at. `look` makes a
    /// new view.
    pub(crate) fn views<'a>(
        self,
        snapshot: &'a Snapshot,
        unusable: &UnusableNodes,
        changed: Changed<'_>,
        look: impl Fn(&'a JobSnapshot) -> JobView<'a>,
    ) -> (Vec<JobView<'a>>, Option<Vec<JobKey>>) {
        let is_same = self.unusable == *unusable && self.has_nodes(snapshot);
        let changed = if is_same { changed } else { Changed::All };
        let now = snapshot.now;
        let mut past = Past::of(self.jobs);
        let mut views = Vec::with_capacity(snapshot.jobs.len());
        for (position, job) in snapshot.jobs.iter().enumerate() {
            let kept = past.take(job);
            let has_changed = changed.has(position);
            let kept = match changed {
                Changed::All => None,
                Changed::Marked(_) => kept.filter(|(_, it)| !it.is_due(now, job, has_changed)),
            };
            let view = kept
                .map(|(at, it)| JobView::new(job, it.later(now, (at, job), has_changed, unusable)));
            // Whether the news are urgent is known once the tasks are counted.
            let view = view.filter(|view| !view.appointment.is_due(now, view.news));
            views.push(view.unwrap_or_else(|| look(job)));
        }
        let gone = match changed {
            Changed::All => None,
            Changed::Marked(_) => Some(past.gone(snapshot)),
        };
        (views, gone)
    }

    /// Keeps the findings of a pass. Returns when the next job must be looked at.
    pub(crate) fn of(
        snapshot: &Snapshot,
        unusable: UnusableNodes,
        views: Vec<JobView<'_>>,
    ) -> (Self, Option<Instant>) {
        let jobs: Vec<Kept> = views
            .into_iter()
            .map(|view| Kept::of(snapshot.now, view))
            .collect();
        let next = jobs.iter().filter_map(Kept::due).min();
        let nodes = snapshot.nodes.iter().map(|node| node.name.clone());
        let kept = Self {
            nodes: nodes.collect(),
            jobs,
            unusable,
        };
        (kept, next)
    }

    /// When each job of the last pass must be looked at, by position.
    pub(crate) fn appointments(&self) -> impl Iterator<Item = Appointment> {
        self.jobs.iter().map(|kept| kept.found.appointment)
    }

    fn has_nodes(&self, snapshot: &Snapshot) -> bool {
        let names = snapshot.nodes.iter().map(|node| &node.name);
        self.nodes.iter().eq(names)
    }
}

/// The rank with this much more slack.
pub(crate) fn shifted((is_hopeless, slack): (bool, i64), by: Span) -> (bool, i64) {
    let slack = match slack {
        i64::MAX => slack,
        slack => slack.saturating_add(by.0),
    };
    (is_hopeless, slack)
}

impl JobView<'_> {
    /// How long urgent news of the job wait: while its times are unknown, by the time that it was given; 0 without either.
    pub(crate) fn patience(&self) -> Span {
        if !self.is_patient {
            return Span(0);
        }
        let time = self.estimate.mean_run.or_else(|| self.limit());
        let time = time.filter(|time| time.is_finite() && *time > 0.0);
        let time = time.unwrap_or(0.0);
        let slack = self.estimate.slack.unwrap_or(f64::INFINITY);
        let scale = slack.clamp(LEAST_SCALE * time, time);
        Span::from_seconds_f64(PATIENCE * scale).min(REST_MAX)
    }
}

/// The jobs of the last pass while those of this one are matched with them. Both are in the order of submission, then
/// key; a job that is not counts as new.
struct Past {
    jobs: Vec<Option<Kept>>,
    next: usize,
}

impl Past {
    fn of(jobs: Vec<Kept>) -> Self {
        Self {
            jobs: jobs.into_iter().map(Some).collect(),
            next: 0,
        }
    }

    /// The job's position then, and the findings about it.
    fn take(&mut self, job: &JobSnapshot) -> Option<(usize, Kept)> {
        while let Some(place) = self.jobs.get_mut(self.next) {
            match place
                .as_ref()
                .map_or(Ordering::Less, |kept| kept.order(job))
            {
                Ordering::Less => self.next += 1,
                Ordering::Equal => {
                    self.next += 1;
                    return Some((self.next - 1, place.take()?));
                }
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// The keys of the jobs that the snapshot no longer has.
    fn gone(self, snapshot: &Snapshot) -> Vec<JobKey> {
        let left = self.jobs.into_iter().flatten().map(|kept| kept.key);
        let is_gone = |key: &JobKey| snapshot.jobs.iter().all(|job| job.key != *key);
        left.filter(is_gone).collect()
    }
}
