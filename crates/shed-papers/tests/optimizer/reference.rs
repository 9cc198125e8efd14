//! Straightforward implementations of the optimizers: every step scans everything and recomputes every sum. They are
//! slow and evidently correct; the fast ones are compared with them.

use shed_core::estimate::pocd::ln_task_pocd;
use shed_papers::optimize::greedy::{GreedyInput, GreedyJob, GreedyMode, GreedyTask};

const IMPOSSIBLE: f64 = f64::NEG_INFINITY;

/// The winner of a scan by ascending index, which replaces its incumbent only for a key that is
/// lower by more than the tie.
fn scan(keys: impl IntoIterator<Item = (usize, f64)>) -> Option<usize> {
    let mut incumbent: Option<(usize, f64)> = None;
    for (index, key) in keys {
        let replaces = match incumbent {
            None => true,
            Some((_, held)) if key.is_infinite() || held.is_infinite() => key < held,
            Some((_, held)) => held - key > 1e-11 * key.abs().max(held.abs()),
        };
        if replaces {
            incumbent = Some((index, key));
        }
    }
    incumbent.map(|(index, _)| index)
}

fn ln_miss(task: &GreedyTask, clones: u32) -> f64 {
    let mut sum = task.ln_miss_present;
    for _ in 0..clones {
        sum += task.ln_miss_per_clone;
    }
    sum
}

fn ln_pocd(task: &GreedyTask, clones: u32) -> f64 {
    ln_task_pocd(ln_miss(task, clones))
}

fn ln_job(job: &GreedyJob, clones: &[u32]) -> f64 {
    let tasks = job.tasks.iter().zip(clones);
    tasks
        .map(|(task, &clones)| ln_pocd(task, clones))
        .sum::<f64>()
        + job.ln_pocd_rest
}

/// ln((1 − Q·q) / (1 − Q)).
fn gain(task: &GreedyTask, clones: u32) -> f64 {
    let (present, clone) = (ln_miss(task, clones), task.ln_miss_per_clone);
    if clone >= 0.0 {
        0.0
    } else if present >= 0.0 {
        f64::INFINITY
    } else {
        libm::log1p(libm::exp(present) * -libm::expm1(clone) / -libm::expm1(present))
    }
}

struct Run<'a> {
    input: &'a GreedyInput,
    mode: GreedyMode,
    clones: Vec<Vec<u32>>,
    /// Jobs that get no more.
    dropped: Vec<bool>,
}

impl Run<'_> {
    fn may_receive(&self, job: usize, task: usize) -> bool {
        let (the_job, the_task) = (&self.input.jobs[job], &self.input.jobs[job].tasks[task]);
        the_task.may_receive_clones
            && the_task.clones_alive + self.clones[job][task] < the_job.max_clones
            && (self.mode == GreedyMode::Paper || the_task.ln_miss_per_clone < 0.0)
    }

    fn candidates(&self, job: usize) -> Vec<usize> {
        let tasks = 0..self.input.jobs[job].tasks.len();
        let the_job = &self.input.jobs[job];
        let has_enough = ln_job(the_job, &self.clones[job]) >= the_job.ln_pocd_target;
        let open = !self.dropped[job] && !has_enough;
        tasks
            .filter(|&task| open && self.may_receive(job, task))
            .collect()
    }

    fn is_hopeless(&self, job: usize) -> bool {
        let the_job = &self.input.jobs[job];
        let stuck = |task: usize| {
            let now = ln_pocd(&the_job.tasks[task], self.clones[job][task]);
            now <= IMPOSSIBLE && !self.may_receive(job, task)
        };
        the_job.ln_pocd_rest <= IMPOSSIBLE || (0..the_job.tasks.len()).any(stuck)
    }

    /// The number of clones that give the job any chance.
    fn rescues_needed(&self, job: usize) -> i64 {
        let tasks = self.input.jobs[job].tasks.iter().zip(&self.clones[job]);
        let impossible = tasks.filter(|&(task, &clones)| ln_pocd(task, clones) <= IMPOSSIBLE);
        impossible.count() as i64
    }

    fn pick(&self) -> Option<(usize, usize)> {
        let jobs = 0..self.input.jobs.len();
        if self.mode == GreedyMode::Marginal {
            let places: Vec<(usize, usize)> = jobs
                .flat_map(|job| {
                    self.candidates(job)
                        .into_iter()
                        .map(move |task| (job, task))
                })
                .collect();
            let key = |&(job, task): &(usize, usize)| {
                -gain(&self.input.jobs[job].tasks[task], self.clones[job][task])
            };
            return scan(places.iter().map(key).enumerate()).map(|place| places[place]);
        }
        let open = jobs.filter(|&job| !self.candidates(job).is_empty());
        let job = scan(open.map(|job| (job, ln_job(&self.input.jobs[job], &self.clones[job]))))?;
        let key = |task: usize| {
            let (the_task, clones) = (&self.input.jobs[job].tasks[task], self.clones[job][task]);
            match self.mode {
                GreedyMode::MaxMin => -gain(the_task, clones),
                _ => ln_pocd(the_task, clones),
            }
        };
        let tasks = self.candidates(job);
        scan(tasks.into_iter().map(|task| (task, key(task)))).map(|task| (job, task))
    }
}

/// Shed+ Algorithm 1, steps 3 and 4: job and task of every clone, in order.
pub fn steps(input: &GreedyInput, mode: GreedyMode) -> Vec<(usize, usize)> {
    let mut run = Run {
        input,
        mode,
        clones: input
            .jobs
            .iter()
            .map(|job| vec![0; job.tasks.len()])
            .collect(),
        dropped: vec![false; input.jobs.len()],
    };
    let guarded = mode != GreedyMode::Paper;
    let hopeless = |run: &Run| {
        (0..input.jobs.len())
            .map(|job| run.is_hopeless(job))
            .collect()
    };
    if guarded {
        run.dropped = hopeless(&run);
    }
    let mut steps = Vec::new();
    while (steps.len() as i64) < input.kappa {
        let Some((job, task)) = run.pick() else {
            break;
        };
        if guarded && run.rescues_needed(job) > input.kappa - steps.len() as i64 {
            run.dropped[job] = true;
            continue;
        }
        run.clones[job][task] += 1;
        steps.push((job, task));
    }
    steps
}
