//! The contract of a policy about clones: it judges one job at a time, and requests stops and clones.
//!
//! In each planning pass `decide` calls, in this order:
//!
//! 1. [`PolicyRule::launch_time`] and [`PolicyRule::judge`] for each job: pure functions of the job's
//!    facts and of the policy's memory of it. They return the policy's estimates, whether it acts on the job in
//!    this pass, and when it needs to judge the job again.
//! 2. [`PolicyRule::arrange`] once, with a summary of each job: for rules that compare jobs. It may
//!    change their order.
//! 3. [`PolicyRule::before`]: stops, before first attempts are served.
//! 4. [`PolicyRule::after`]: clones, from what first attempts leave.
//!
//! A policy holds no limits. Capacity, quotas, placement, the rules of the job's user and the work budget belong to
//! `decide`. It grants, checks and records what a policy requests at the [`Desk`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::estimate::progress::optimization_interval;
use crate::ids::Tenant;
use crate::memory::{Memory, PolicyState, ShownTimes};
use crate::policy::pass_view::Desk;
use crate::round::{JobView, Origin, Round};
use crate::settings::{Parsed, Setting};
use crate::time::{Instant, Span};

/// t_avg until one is measured, for policies that have no parameter of their own for it.
const LAUNCH_OVERHEAD: Span = Span::from_seconds(3);

/// After a clone was disrupted, its task gets no other clone for this share of the job's time, within these bounds.
const CLONE_REST_SHARE: f64 = 0.05;
const CLONE_REST_MIN: Span = Span::from_seconds(10);
const CLONE_REST_MAX: Span = Span::from_seconds(60);

/// A policy's memory of one job, kept from pass to pass.
pub trait Remembered: Clone + Default + PartialEq + fmt::Debug + Send + 'static {
    /// The memory as text.
    fn write(&self) -> PolicyState;

    /// Reads the memory from text. Parts that do not parse are forgotten.
    fn read(state: &PolicyState) -> Self;
}

impl Remembered for () {
    fn write(&self) -> PolicyState {
        PolicyState::default()
    }

    fn read(_: &PolicyState) -> Self {}
}

/// The policy's memory of a job at the time it judges the job.
#[derive(Debug, Clone, Copy)]
pub struct Recall<'m, S> {
    /// When the pass takes place.
    pub now: Instant,
    /// When the policy last acted on the job.
    pub last: Option<Instant>,
    /// The policy's memory of the job.
    pub state: &'m S,
}

/// A policy's findings about one job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Judgement<B> {
    /// Whether the policy acts on the job in this pass: only then are its requests granted.
    pub acts: bool,
    /// When the policy needs to judge the job again, even if nothing happens.
    pub next: Option<Instant>,
    /// Its rank, where the policy has one: whether it is hopeless, and its slack in milliseconds.
    pub rank: Option<(bool, i64)>,
    /// The policy's other estimates.
    pub belief: B,
}

impl<B: Default> Judgement<B> {
    /// The judgement of a job that the policy leaves alone.
    pub fn none() -> Self {
        Self::default()
    }

    /// The judgement of a job that the policy acts on in every pass, at least every `interval`, because progress
    /// causes no event.
    pub fn every<S>(interval: Span, job: &JobView<'_>, recall: &Recall<'_, S>) -> Self {
        let acts = job.may_speculate();
        Self {
            acts,
            next: acts.then(|| recall.now.plus(interval)),
            ..Self::default()
        }
    }
}

/// A summary of one job for rules that compare jobs: a few numbers, whatever the job's size.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'s, B> {
    /// The job's position in the pass.
    pub position: usize,
    /// The tenant that the job belongs to.
    pub tenant: &'s Tenant,
    /// Seconds from its submission to its deadline.
    pub limit: Option<f64>,
    /// Whether the policy acts on it.
    pub acts: bool,
    /// Whether the policy acts on it for the first time.
    pub is_new: bool,
    /// Its rank.
    pub rank: Option<(bool, i64)>,
    /// Tasks that have not ended, including those that wait.
    pub unfinished: u32,
    /// How many attempts like its own the usable capacity holds.
    pub slots: u32,
    /// The policy's estimates of the job.
    pub belief: &'s B,
}

/// What a policy knows when it compares jobs, in addition to their summaries.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'c> {
    /// The positions of the jobs by submission, then by key.
    pub by_submission: &'c [usize],
    /// The task times that recent jobs have shown.
    pub shown_times: &'c ShownTimes,
}

/// The result of comparing one job with the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Arranged<P> {
    /// The job's rank, instead of that of its judgement.
    pub rank: Option<(bool, i64)>,
    /// The policy's facts about the job when it requests stops and clones.
    pub place: P,
}

impl<P> Arranged<P> {
    /// The arrangement without another rank.
    pub fn at(place: P) -> Self {
        Self { rank: None, place }
    }
}

/// A policy about clones.
pub trait PolicyRule: Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The policy's estimates of one job.
    type Belief: Clone + Default + fmt::Debug + Send + 'static;

    /// The policy's memory of one job.
    type State: Remembered;

    /// The facts about one job that only a comparison with the others yields, and that the policy needs when it
    /// requests stops and clones: for example its share or its tier.
    type Place: Clone + Default + fmt::Debug;

    /// The policy's name in the text, as in the papers.
    fn name(&self) -> &'static str;

    /// The policy's parameters.
    fn settings(&mut self) -> Vec<Setting<'_>> {
        Vec::new()
    }

    /// Whether the policy decides by files.
    fn reads_files(&self) -> bool {
        false
    }

    /// Takes the text of a file that the policy decides by.
    ///
    /// # Errors
    /// If the policy has no use for a file of that name, or the text is not valid.
    fn read_file(&mut self, name: &str, _text: &str) -> Result<(), String> {
        Err(format!("`{}` reads no file `{name}`", self.name()))
    }

    /// The files that the policy decides by: name and text.
    fn files(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Most live clones of a task next to its first attempt; 0: the policy launches none.
    fn max_clones(&self) -> u32;

    /// Whether the policy gives up a task's only attempt and has the task launched again.
    fn restarts(&self) -> bool {
        false
    }

    /// Whether the policy lets a task's only attempt be preempted for another job.
    fn preempts(&self) -> bool {
        false
    }

    /// Whether clones that resume replace a task's first attempt, which then stops once one of them has started. All
    /// other policies stop an attempt only if another one of the task has reported.
    fn hands_over(&self) -> bool {
        false
    }

    /// t_avg until one is measured.
    fn launch_overhead(&self) -> Span {
        LAUNCH_OVERHEAD
    }

    /// The usual standard deviation of a predicted remaining time, as a share of it, for a policy that takes reports as
    /// noisy observations of an attempt's time (`round::estimates::report_error`). Otherwise an attempt has the time that it predicts,
    /// and misses by eq. 14 of Shed+.
    fn report_error(&self) -> Option<f64> {
        None
    }

    /// Whether each pass looks at every job, and news of any job need a pass at once: the policy compares jobs, or acts
    /// whenever something happens, as the policies of the papers do. It costs passes that grow with the number of
    /// attempts. Otherwise a pass keeps what it found about jobs without news (decision 0018). A policy says so only if
    /// that changes its results by no more than its decision record allows.
    fn looks_at_all(&self) -> bool {
        true
    }

    /// How long a task gets no clone after one of its clones was disrupted, because the pod that took its slot needs
    /// it. The default is about θ (eq. 17 of Shed+), within bounds that suit policies that look more often. `limit`:
    /// from the job's submission to its deadline, if it has one; `overhead`: t_avg.
    fn clone_rest(&self, limit: Option<Span>, overhead: f64) -> Span {
        let limit = limit.map_or(0.0, Span::seconds);
        let theta = optimization_interval(limit, overhead, CLONE_REST_SHARE);
        Span::from_seconds_f64(theta).clamp(CLONE_REST_MIN, CLONE_REST_MAX)
    }

    /// Seconds from a launch of the job to the start of its work, for a policy that measures it job by job; t_avg
    /// otherwise. Like that of [`PolicyRule::judge`], which follows it, the result depends only on the job.
    fn launch_time(&self, _job: &JobView<'_>) -> Option<f64> {
        None
    }

    /// Judges one job. The result depends only on the arguments, so a job whose facts are unchanged need not be
    /// judged again before `next`.
    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>)
    -> Judgement<Self::Belief>;

    /// Learns from the jobs that the pass looks at, after they were judged.
    fn learn(&self, _desk: &mut Desk<'_, '_, Self>) {}

    /// Compares the jobs of a pass, given in its order. The default arranges none of them.
    fn arrange(
        &self,
        _jobs: &[Summary<'_, Self::Belief>],
        _context: &Comparison<'_>,
    ) -> Vec<Arranged<Self::Place>> {
        Vec::new()
    }

    /// Requests stops, before first attempts are served.
    fn before(&self, _desk: &mut Desk<'_, '_, Self>) {}

    /// Requests clones, after first attempts are served and the jobs' PoCDs are known.
    fn after(&self, _desk: &mut Desk<'_, '_, Self>) {}
}

/// A policy of any type.
pub(crate) trait AnyRule: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn parts(&self) -> Vec<String>;
    fn help(&self) -> String;
    fn with(&self, parsed: &Parsed<'_>) -> Result<Arc<dyn AnyRule>, String>;
    fn reads_files(&self) -> bool;
    fn with_files(&self, files: &BTreeMap<String, String>) -> Result<Arc<dyn AnyRule>, String>;
    fn files(&self) -> BTreeMap<String, String>;
    fn max_clones(&self) -> u32;
    fn restarts(&self) -> bool;
    fn preempts(&self) -> bool;
    fn hands_over(&self) -> bool;
    fn launch_overhead(&self) -> Span;
    fn looks_at_all(&self) -> bool;
    fn report_error(&self) -> Option<f64>;
    fn clone_rest(&self, limit: Option<Span>, overhead: f64) -> Span;
    fn open<'s>(
        &'s self,
        memory: &Memory,
        round: &Round<'_>,
        kept: Option<KeptBeliefs>,
    ) -> Box<dyn Session + 's>;
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn AnyRule) -> bool;
}

/// A policy in one pass.
pub(crate) trait Session {
    fn before(&mut self, round: &mut Round<'_>);
    fn after(&mut self, round: &mut Round<'_>);
    /// The policy's memory of the jobs that it may have changed, by position.
    fn states(&self, round: &Round<'_>) -> Vec<(usize, PolicyState)>;
    /// The policy's findings, for the next pass.
    fn keep(self: Box<Self>) -> KeptBeliefs;
}

impl<R: PolicyRule> AnyRule for R {
    fn name(&self) -> &'static str {
        PolicyRule::name(self)
    }

    fn parts(&self) -> Vec<String> {
        let mut copy = self.clone();
        let settings = copy.settings();
        let valid = settings.iter().filter(|setting| !setting.is_retired());
        valid.map(Setting::to_string).collect()
    }

    fn help(&self) -> String {
        let mut copy = self.clone();
        crate::settings::help(PolicyRule::name(self), &copy.settings())
    }

    fn with(&self, parsed: &Parsed<'_>) -> Result<Arc<dyn AnyRule>, String> {
        let mut copy = self.clone();
        parsed.read_into(copy.settings())?;
        Ok(Arc::new(copy))
    }

    fn reads_files(&self) -> bool {
        PolicyRule::reads_files(self)
    }

    fn with_files(&self, files: &BTreeMap<String, String>) -> Result<Arc<dyn AnyRule>, String> {
        let mut copy = self.clone();
        for (name, text) in files {
            copy.read_file(name, text)?;
        }
        Ok(Arc::new(copy))
    }

    fn files(&self) -> BTreeMap<String, String> {
        PolicyRule::files(self)
    }

    fn max_clones(&self) -> u32 {
        PolicyRule::max_clones(self)
    }

    fn restarts(&self) -> bool {
        PolicyRule::restarts(self)
    }

    fn preempts(&self) -> bool {
        PolicyRule::preempts(self)
    }

    fn hands_over(&self) -> bool {
        PolicyRule::hands_over(self)
    }

    fn launch_overhead(&self) -> Span {
        PolicyRule::launch_overhead(self)
    }

    fn looks_at_all(&self) -> bool {
        PolicyRule::looks_at_all(self)
    }

    fn report_error(&self) -> Option<f64> {
        PolicyRule::report_error(self)
    }

    fn clone_rest(&self, limit: Option<Span>, overhead: f64) -> Span {
        PolicyRule::clone_rest(self, limit, overhead)
    }

    fn open<'s>(
        &'s self,
        memory: &Memory,
        round: &Round<'_>,
        kept: Option<KeptBeliefs>,
    ) -> Box<dyn Session + 's> {
        let kept = kept.and_then(|kept| kept.0.downcast::<Vec<Known<R>>>().ok());
        let mut kept = kept.map_or_else(Vec::new, |kept| *kept);
        let read = |key| memory.state(key).map(R::State::read).unwrap_or_default();
        let mut opened = Opened {
            rule: self,
            states: Vec::with_capacity(round.jobs.len()),
            beliefs: Vec::with_capacity(round.jobs.len()),
            places: Vec::new(),
            changed: Vec::new(),
        };
        for view in &round.jobs {
            let known = match view.origin {
                Origin::Kept(at) => kept.get_mut(at).map(std::mem::take),
                Origin::Looked => None,
            };
            let (state, belief) =
                known.unwrap_or_else(|| (read(&view.job.key), R::Belief::default()));
            opened.states.push(state);
            opened.beliefs.push(belief);
        }
        Box::new(opened)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn AnyRule) -> bool {
        other.as_any().downcast_ref::<R>() == Some(self)
    }
}

/// A policy's memory of a job, and its belief about it.
type Known<R> = (<R as PolicyRule>::State, <R as PolicyRule>::Belief);

/// What a policy found out about the jobs of a pass, by position.
pub(crate) struct KeptBeliefs(Box<dyn Any + Send>);

impl fmt::Debug for KeptBeliefs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptBeliefs")
    }
}

struct Opened<'s, R: PolicyRule> {
    rule: &'s R,
    states: Vec<R::State>,
    beliefs: Vec<R::Belief>,
    places: Vec<R::Place>,
    /// The positions of the jobs whose memory the policy asked to change.
    changed: Vec<usize>,
}

impl<R: PolicyRule> Opened<'_, R> {
    /// Judges the jobs that the pass looks at, and arranges all.
    fn judge(&mut self, round: &mut Round<'_>) {
        let (now, memory) = (round.snapshot.now, round.memory);
        let known = self.states.iter().zip(&mut self.beliefs);
        for (job, (state, belief)) in round.jobs.iter_mut().zip(known) {
            if !job.is_looked_at() {
                continue;
            }
            let known = memory.job(&job.job.key);
            job.set_new(known.last_optimized.is_none());
            job.assess(self.rule.launch_time(job));
            let judgement = self.rule.judge(
                job,
                &Recall {
                    now,
                    last: known.last_optimized.map(|last| last.min(now)),
                    state,
                },
            );
            job.draft.optimized = judgement.acts;
            job.rank(judgement.rank);
            job.judge_at(judgement.next.filter(|&at| at > now));
            *belief = judgement.belief;
        }
        let rule = self.rule;
        rule.learn(&mut self.desk(round));
        self.arrange(round);
    }

    fn arrange(&mut self, round: &mut Round<'_>) {
        let jobs = round.jobs.iter().enumerate().zip(&self.beliefs);
        let jobs = jobs.map(|((position, job), belief)| Summary {
            position,
            tenant: &job.job.tenant,
            limit: job.limit(),
            acts: job.draft.optimized,
            is_new: job.is_new,
            rank: job.rank,
            unfinished: job.unfinished(),
            slots: round.capacity.times_usable(position),
            belief,
        });
        let jobs: Vec<_> = jobs.collect();
        let context = Comparison {
            by_submission: &round.by_submission(),
            shown_times: &round.shown_times,
        };
        let arranged = self.rule.arrange(&jobs, &context);
        for (job, arranged) in round.jobs.iter_mut().zip(&arranged) {
            job.rank(arranged.rank);
        }
        self.places = arranged.into_iter().map(|it| it.place).collect();
    }

    fn desk<'d, 'a>(&'d mut self, round: &'d mut Round<'a>) -> Desk<'d, 'a, R> {
        let Self {
            states,
            beliefs,
            places,
            changed,
            ..
        } = self;
        Desk::new(round, (states, changed), beliefs, places)
    }
}

impl<R: PolicyRule> Session for Opened<'_, R> {
    fn before(&mut self, round: &mut Round<'_>) {
        self.judge(round);
        let rule = self.rule;
        rule.before(&mut self.desk(round));
    }

    fn after(&mut self, round: &mut Round<'_>) {
        let rule = self.rule;
        rule.after(&mut self.desk(round));
    }

    fn states(&self, round: &Round<'_>) -> Vec<(usize, PolicyState)> {
        let looked = round.jobs.iter().enumerate();
        let looked = looked.filter(|(_, job)| job.is_looked_at());
        let positions = looked.map(|(position, _)| position);
        let positions = positions.chain(self.changed.iter().copied());
        let written = |at: usize| Some((at, self.states.get(at)?.write()));
        positions.filter_map(written).collect()
    }

    fn keep(self: Box<Self>) -> KeptBeliefs {
        let known: Vec<Known<R>> = self.states.into_iter().zip(self.beliefs).collect();
        KeptBeliefs(Box::new(known))
    }
}

#[cfg(test)]
mod tests;
