//! An upper bound of the number of deadlines that any policy can meet. `docs/research/bound.md` derives and
//! proves it. It is the number of jobs in time for an ideal policy, which knows every sample, takes
//! the shortest for each task, and may divide slots and time freely.

use shed_core::time::Span;

use shed_sim::model::{Model, Which};
use shed_sim::settings::Delay;
use shed_sim::trace::{Job, Trace};

mod flow;

use flow::Network;

/// Parameters of the bound other than the workload.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// Attempts that run at a time.
    pub slots: u32,
    /// How long attempts take.
    pub model: Model,
    /// From an attempt's launch to its start, in its slot.
    pub launch_overhead: Delay,
    /// K: number of samples per task, the first attempt included.
    pub draws: u32,
    /// The seed of the samples.
    pub seed: u64,
}

/// The bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Jobs with a deadline.
    pub jobs: usize,
    /// Jobs that would be in time if each ran alone.
    pub alone: usize,
    /// No policy has more of them in time.
    pub most: usize,
}

/// A job of the relaxation, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Fluid {
    arrival: i64,
    deadline: i64,
    /// Slot time that its tasks need at least.
    work: i64,
    /// Slots that it can use at a time.
    width: i64,
}

/// The bound of a shaped workload.
pub fn bound(trace: &Trace, conditions: &Conditions) -> Bound {
    let with_deadline = trace.jobs.iter().filter(|job| job.deadline.is_some());
    let jobs = (0..).zip(&trace.jobs);
    let fluid: Vec<Fluid> = jobs
        .filter_map(|(position, job)| fluid(position, job, conditions))
        .collect();
    Bound {
        jobs: with_deadline.count(),
        alone: fluid.len(),
        most: most(&fluid, i64::from(conditions.slots)),
    }
}

/// The job with its shortest samples. None if it misses even alone, or has no deadline.
fn fluid(position: u32, job: &Job, conditions: &Conditions) -> Option<Fluid> {
    let limit = job.deadline?;
    let (mut work, mut tasks) = (0, 0);
    let mut longest = Span(0);
    for (stage, stage_facts) in (0..).zip(&job.stages) {
        for task in 0..stage_facts.durations.len() as u32 {
            let which = |attempt| Which {
                job: position,
                stage,
                task,
                attempt,
            };
            let least = least(job, conditions, which);
            work += least.0;
            longest = longest.max(least);
            tasks += 1;
        }
    }
    let width = tasks.min(i64::from(conditions.slots));
    let is_possible = longest <= limit && work <= width.saturating_mul(limit.0);
    is_possible.then_some(Fluid {
        arrival: job.arrival.0,
        deadline: job.arrival.plus(limit).0,
        work,
        width,
    })
}

/// The least time for which a task holds a slot: one launch and its shortest sample.
fn least(job: &Job, conditions: &Conditions, which: impl Fn(u32) -> Which) -> Span {
    let median = job.usual_duration();
    let draws = (0..conditions.draws.max(1)).map(|attempt| {
        let draw = conditions
            .model
            .draw(conditions.seed, job, median, which(attempt));
        draw.work
    });
    let launch = conditions.launch_overhead.of(median);
    Span(launch.0 + draws.min().unwrap_or(Span(0)).0)
}

/// The maximum number of jobs in time: the largest sum of the shares of their work that fit into
/// their windows. Work flows from jobs through the times between two arrivals or deadlines into
/// slots. The amounts that jobs can send together form a polymatroid. So the jobs whose work has
/// the highest value (the smallest jobs) may be served first, each as far as possible.
fn most(jobs: &[Fluid], slots: i64) -> usize {
    let mut times: Vec<i64> = jobs
        .iter()
        .flat_map(|job| [job.arrival, job.deadline])
        .collect();
    times.sort_unstable();
    times.dedup();
    let sink = jobs.len() + times.len();
    let mut network = Network::new(sink + 1);
    let windows = || times.windows(2).enumerate();
    for (at, window) in windows() {
        let length = window[1] - window[0];
        network.join(jobs.len() + at, sink, slots.saturating_mul(length));
    }
    for (number, job) in jobs.iter().enumerate() {
        let inside = windows().filter(|(_, w)| job.arrival <= w[0] && w[1] <= job.deadline);
        for (at, window) in inside {
            let length = window[1] - window[0];
            network.join(number, jobs.len() + at, job.width.saturating_mul(length));
        }
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&number| jobs[number].work);
    let mut sum = 0.0;
    for number in order {
        let work = jobs[number].work;
        sum += match work {
            0 => 1.0,
            _ => network.send(number, sink, work) as f64 / work as f64,
        };
    }
    // A count is whole; the sum of n quotients is exact to n roundings.
    (sum + 1e-6).floor() as usize
}

#[cfg(test)]
mod tests;
