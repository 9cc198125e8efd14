//! Headroom for future jobs. An attempt that holds its slot for long may keep it from tasks of a higher value density
//! that are not submitted yet. The recent arrivals tell how many such tasks to expect. A job therefore gets first
//! attempts only while the jobs up to its value density leave headroom for the others' demand.
//!
//! The model of such demand is an M/G/∞ queue with arrivals in groups. By Campbell's theorem its mean is Σ volume /
//! window and its variance Σ width · volume / window, over the jobs that came within the window. The cost of one more
//! attempt is the value of the time share in which that demand exceeds the remaining capacity.
//!
//! Headroom is kept within the share of a tenant, for jobs of that tenant. So no tenant keeps capacity from another.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::estimate::log_tails::normal_tail_quantile;
use crate::ids::JobKey;
use crate::memory::{Arrival, Arrivals};
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Fresh, known_time, usual_share};
use crate::policy::shed_prime::outlook::{Found, Outlook};
use crate::round::{Allowance, Claim, JobView};
use crate::snapshot::JobSnapshot;
use crate::time::Instant;

/// Headroom is reserved for jobs whose value per share and second is this many times as high.
const TIMES_AS_MUCH: f64 = 5.0;

/// The expected arrivals while an attempt holds its slot are those of an equally long time before, or of this share
/// of it if no job came earlier.
const WINDOW_MIN: f64 = 0.25;

/// Arrivals that could wait count less. One that could wait four times as long as the attempt holds its slot does not
/// count.
const SLACK_WEIGHT: f64 = 0.25;

/// Bounds of the share of the time in which the others may lack capacity: the job's value density over theirs. A job
/// of nearly no value (a hopeless job, one without a deadline) leaves headroom for all but a hundredth of the time.
/// At the upper bound the headroom is the mean of the others' demand.
const RISK_MIN: f64 = 0.01;
const RISK_MAX: f64 = 0.5;

/// The demand of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ask {
    /// The share of the usable capacity per attempt.
    share: f64,
    /// Seconds for which an attempt holds that share.
    seconds: f64,
    arrival: Option<Arrival>,
}

/// The demand of a job, and the one that it leaves headroom for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Demands {
    own: Ask,
    others: Option<Demand>,
}

/// Notes the arrivals, and sets how many first attempts each waiting job may get.
pub(super) fn reserve(desk: &mut PrimeDesk<'_, '_>) {
    let positions = 0..desk.jobs().len();
    let news: Vec<usize> = positions.filter(|&at| known(desk, at).is_none()).collect();
    let asks: Vec<(usize, Ask)> = news
        .into_iter()
        .filter_map(|at| Some((at, ask(desk, at)?)))
        .collect();
    let now = desk.now();
    let (jobs, arrivals) = desk.jobs_and_arrivals();
    for (at, ask) in &asks {
        if let Some(state) = jobs.get(*at) {
            note(arrivals, now, state, ask.arrival);
        }
    }
    for (at, own) in asks {
        let demands = expected(desk, at, own);
        if let (Some(state), Some(demands)) = (desk.job(at), demands) {
            let found = Found::new(state, demands);
            if let Some(outlook) = desk.state_mut(at) {
                outlook.demands = found;
            }
        }
    }
    limit(desk);
}

/// The demands that follow from the last look at the job, if they are known already.
fn known<'d>(desk: &'d PrimeDesk<'_, '_>, position: usize) -> Option<&'d Demands> {
    let outlook = desk.state(position)?;
    outlook.demands.get(desk.job(position)?)
}

fn expected(desk: &PrimeDesk<'_, '_>, position: usize, own: Ask) -> Option<Demands> {
    let state = desk.job(position)?;
    let above = TIMES_AS_MUCH * state.waiting_value_density() / own.share;
    let waits = state.launchable_now() > 0 && own.share > 0.0;
    let others = waits.then(|| demand(desk, state.job, above, own.seconds));
    Some(Demands {
        own,
        others: others.flatten(),
    })
}

/// Sets the claim of each job.
fn limit(desk: &mut PrimeDesk<'_, '_>) {
    let of = |outlook: &Outlook| outlook.demands.last().copied();
    let demands: Vec<Option<Demands>> = desk.states().iter().map(of).collect();
    for (position, demands) in demands.iter().enumerate() {
        let claim = demands.map_or_else(Claim::default, |demands| demands.own.claim());
        desk.set_claim(position, claim);
    }
    let (held, margin) = (Held::of(desk), Margin::default());
    for (position, demands) in demands.iter().enumerate() {
        let of = |demands| allowance(desk, position, demands, (&held, &margin));
        let allowance = demands.and_then(of);
        if let Some(state) = desk.job(position).filter(|_| allowance.is_some()) {
            let claim = Claim {
                allowance,
                ..state.draft.claim
            };
            desk.set_claim(position, claim);
        }
    }
}

impl Ask {
    /// Without an allowance.
    fn claim(&self) -> Claim {
        Claim {
            share: self.share,
            density: self.arrival.map_or(0.0, |arrival| arrival.density()),
            allowance: None,
        }
    }
}

/// Notes an arrival that may run. A job that its user holds back, or that cannot be created or placed, is not likely
/// to come again and demand capacity.
fn note(arrivals: &mut Arrivals, now: Instant, state: &JobView<'_>, arrival: Option<Arrival>) {
    let key = &state.job.key;
    let has_run = arrivals.has_run(key) || has_run(state.job);
    if let Some(arrival) = arrival.filter(|_| has_run || !state.is_held_up(now)) {
        arrivals.note(key, &state.job.tenant, arrival);
        arrivals.mark(key, has_run, state.holds_capacity());
    }
}

/// Updates the noted jobs in every pass, whether or not capacity is short: what they demand, whether they have run, and
/// which of them are gone.
pub(super) fn follow(desk: &mut PrimeDesk<'_, '_>) {
    renew(desk);
    mark(desk);
    let now = desk.now();
    if desk.may_have_departed() && desk.arrivals().may_depart() {
        let present: BTreeSet<&JobKey> = desk.snapshot().jobs.iter().map(|job| &job.key).collect();
        let (_, arrivals) = desk.jobs_and_arrivals();
        arrivals.note_departures(now, |key| present.contains(key));
    }
}

/// Records which of the noted jobs have run. It forgets those that may no longer run before they ever did.
fn mark(desk: &mut PrimeDesk<'_, '_>) {
    let now = desk.now();
    let (jobs, arrivals) = desk.jobs_and_arrivals();
    if !arrivals.may_be_withdrawn() {
        return;
    }
    for state in jobs.iter().filter(|state| state.has_changed()) {
        let key = &state.job.key;
        if arrivals.has_run(key) {
            continue;
        }
        let has_run = has_run(state.job);
        if state.is_held_up(now) && !has_run {
            arrivals.withdraw(key);
        } else {
            arrivals.mark(key, has_run, state.holds_capacity());
        }
    }
}

/// Estimates the demands of the noted jobs again where the jobs have changed, whether or not capacity is short. The
/// last look at a job counts from then on, and what it says is what the job's attempts took, not a presumption.
fn renew(desk: &mut PrimeDesk<'_, '_>) {
    let has_news = |at: usize| {
        let state = desk.job(at).filter(|state| state.has_changed())?;
        desk.arrivals().has(&state.job.key).then_some(at)
    };
    let asks: Vec<(usize, Arrival)> = (0..desk.jobs().len())
        .filter_map(has_news)
        .filter_map(|at| Some((at, ask(desk, at)?.arrival?)))
        .collect();
    let (jobs, arrivals) = desk.jobs_and_arrivals();
    for (at, arrival) in asks {
        if let Some(state) = jobs.get(at) {
            arrivals.renew(&state.job.key, arrival);
        }
    }
}

/// Whether an attempt of the job has begun.
fn has_run(job: &JobSnapshot) -> bool {
    let mut attempts = job.tasks.iter().flat_map(|task| &task.attempts);
    let has_ended = !job.done.is_empty() || !job.failed.is_empty() || !job.ended_runs.is_empty();
    has_ended || attempts.any(|attempt| attempt.started.is_some())
}

fn ask(desk: &PrimeDesk<'_, '_>, position: usize) -> Option<Ask> {
    let state = desk.job(position)?;
    let share = desk.capacity().dominant_share(position);
    // A demand beyond the whole capacity takes nothing from other jobs, and no headroom is kept from it.
    let share = if share.is_finite() { share } else { 0.0 };
    let rules = &state.job.rules;
    let limit = state.job.deadline.map(|at| at.since(state.job.submitted));
    let is_known = limit.is_some() || known_time(state).is_some();
    let seconds = if is_known {
        Fresh::of(state, usual_share(desk, position)).holds(0.0)
    } else {
        // The end is unknown.
        f64::INFINITY
    };
    let width = share * f64::from(rules.completions.min(rules.parallelism).max(1));
    let volume = share * f64::from(rules.completions) * seconds;
    let arrival = limit
        .filter(|_| volume > 0.0 && volume.is_finite())
        .map(|limit| Arrival {
            submitted: state.job.submitted,
            width,
            volume,
            hope: hope(desk, position),
            slack: (limit.seconds() - seconds).max(0.0),
            has_run: false,
            is_launched: false,
            is_gone: false,
        });
    Some(Ask {
        share,
        seconds,
        arrival,
    })
}

/// P(the job is in time). No headroom is kept for a hopeless job: it is served last itself.
fn hope(desk: &PrimeDesk<'_, '_>, position: usize) -> f64 {
    let rank = desk.job(position).and_then(|state| state.rank);
    match (rank, desk.belief(position)) {
        (Some((true, _)), _) | (_, None) => 0.0,
        (_, Some(belief)) => libm::exp(belief.ln_hope).min(1.0),
    }
}

/// The capacity that attempts hold, by tenant and by the value density of their jobs.
struct Held {
    /// For each tenant: density, and the capacity that attempts of its jobs up to that density hold; ascending.
    sums: Vec<Vec<(f64, f64)>>,
}

impl Held {
    fn of(desk: &PrimeDesk<'_, '_>) -> Self {
        let mut sums: Vec<Vec<(f64, f64)>> = vec![Vec::new(); desk.shares().tenants()];
        let jobs = desk.jobs().iter().enumerate();
        // Most jobs that wait hold nothing.
        for (position, state) in jobs.filter(|(_, state)| state.holds_capacity()) {
            if let Some(own) = sums.get_mut(desk.shares().number(position)) {
                own.push((state.draft.claim.density, state.held()));
            }
        }
        for own in &mut sums {
            own.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut sum = 0.0;
            for (_, held) in own {
                sum += *held;
                *held = sum;
            }
        }
        Self { sums }
    }

    fn up_to(&self, tenant: usize, density: f64) -> f64 {
        let own = self.sums.get(tenant).map_or(&[][..], Vec::as_slice);
        let count = own.partition_point(|(at, _)| *at <= density);
        let last = count.checked_sub(1).and_then(|at| own.get(at));
        last.map_or(0.0, |(_, sum)| *sum)
    }
}

/// The number of standard deviations that demand exceeds at a risk. Most jobs of a pass have one of the bounds.
#[derive(Default)]
struct Margin {
    least: OnceCell<f64>,
    most: OnceCell<f64>,
}

impl Margin {
    fn of(&self, risk: f64) -> f64 {
        let found = || normal_tail_quantile(libm::log(risk));
        if risk <= RISK_MIN {
            *self.least.get_or_init(found)
        } else if risk >= RISK_MAX {
            *self.most.get_or_init(found)
        } else {
            found()
        }
    }
}

/// The allowance of the job, if headroom is kept from it.
fn allowance(
    desk: &PrimeDesk<'_, '_>,
    position: usize,
    Demands { own: ask, others }: Demands,
    (held, margin): (&Held, &Margin),
) -> Option<Allowance> {
    let (state, demand) = (desk.job(position)?, others?);
    if state.launchable_now() == 0 || ask.share <= 0.0 {
        return None;
    }
    let worth = state.waiting_value_density() / ask.share;
    let up_to = TIMES_AS_MUCH * worth;
    let risk = (worth / demand.density).clamp(RISK_MIN, RISK_MAX);
    let kept = demand.mean + margin.of(risk) * demand.deviation;
    let tenant = desk.shares().number(position);
    let of_others = if state.draft.claim.density <= up_to {
        held.up_to(tenant, up_to)
    } else {
        held.up_to(tenant, up_to) + state.held()
    };
    let left = (desk.shares().share(position) - kept).max(0.0) - of_others;
    // One attempt of each job may always run, so no job waits endlessly, and a running attempt shows its time.
    let left = left.max(ask.share - state.held());
    Some(Allowance { up_to, left })
}

/// The expected demand of jobs with a higher value density.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Demand {
    /// The mean share of the usable capacity.
    mean: f64,
    deviation: f64,
    /// Deadlines met per share and second.
    density: f64,
}

fn demand(desk: &PrimeDesk<'_, '_>, job: &JobSnapshot, above: f64, seconds: f64) -> Option<Demand> {
    let now = desk.now();
    let first = desk.arrivals().first_of(&job.tenant)?;
    let elapsed = now.since(first).seconds();
    // For an attempt without a known end all remembered arrivals count.
    let window = if seconds.is_finite() {
        elapsed.clamp(WINDOW_MIN * seconds, seconds)
    } else {
        elapsed
    };
    let window = window.max(1.0);
    let [mut count, mut value, mut volume, mut squares] = [0.0; 4];
    for (other, arrival) in desk.arrivals().of_tenant(&job.tenant) {
        let is_recent = now.since(arrival.submitted).seconds() <= window;
        if is_recent && arrival.density() > above && *other != job.key {
            let waits = SLACK_WEIGHT * arrival.slack / seconds.max(1.0);
            let weight = (1.0 - waits).max(0.0);
            count += weight;
            value += weight * arrival.hope;
            volume += weight * arrival.volume;
            squares += weight * arrival.width.min(1.0) * arrival.volume;
        }
    }
    // n arrivals span one interval less. A single arrival gives no rate.
    let rate = (count - 1.0) / count / window;
    (rate > 0.0).then(|| Demand {
        mean: volume * rate,
        deviation: libm::sqrt(squares * rate),
        density: value / volume,
    })
}
