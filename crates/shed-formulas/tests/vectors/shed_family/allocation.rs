//! The cases that check the number of clones of each job.

use serde_json::{Value, json};
use shed_core::estimate::pareto::ln_miss;
use shed_core::estimate::pocd::{ln_job_pocd_uniform, ln_task_pocd, probability};
use shed_formulas::slots::{clone_capacity, usable_slots};
use shed_papers::formulas::job_level::{
    JobLevelInput, JobLevelJob, JobLevelMode, alloc_job as alloc_job_of,
};
use shed_papers::optimize::greedy::{
    GreedyInput, GreedyJob, GreedyMode, GreedyOutcome, GreedyTask, RefusalReason,
    alloc_task as alloc_task_of, gains,
};

use super::exact::{Curve, Total, enumerate, knapsack};
use crate::case::{Case, count, items, number, numbers};

const NEVER: f64 = f64::NEG_INFINITY;

/// One job of a task-level case.
struct TaskLevelJob {
    slack: f64,
    t_min: f64,
    phis: Vec<f64>,
    betas: Vec<f64>,
    stragglers: Vec<bool>,
}

impl TaskLevelJob {
    fn read(value: &Value) -> Self {
        let stragglers = value["straggler"].as_array().unwrap().iter();
        Self {
            slack: number(&value["deadline"]) - number(&value["tau"]),
            t_min: number(&value["t_min"]),
            phis: numbers(&value["phi"], f64::NAN),
            betas: numbers(&value["beta"], f64::INFINITY),
            stragglers: stragglers.map(|flag| flag.as_bool().unwrap()).collect(),
        }
    }

    fn is_past_deadline(&self) -> bool {
        self.slack <= 0.0 && self.phis.iter().any(|&phi| phi < 1.0)
    }

    fn base_attempts(&self, unfinished_only: bool) -> u64 {
        let counts = |phi: &&f64| !unfinished_only || **phi < 1.0;
        self.phis.iter().filter(counts).count() as u64
    }

    fn ln_miss(&self, task: usize) -> f64 {
        ln_miss(self.phis[task], self.t_min, self.slack, self.betas[task])
    }

    /// The tasks that may receive clones; a finished one may not.
    fn candidates(&self) -> Vec<usize> {
        (0..self.phis.len())
            .filter(|&task| self.stragglers[task] && self.phis[task] < 1.0)
            .collect()
    }

    fn greedy_job(&self, max_clones: u32) -> GreedyJob {
        let candidates = self.candidates();
        let rest = (0..self.phis.len()).filter(|task| !candidates.contains(task));
        let candidate = |&task: &usize| GreedyTask {
            ln_miss_present: self.ln_miss(task),
            ln_miss_per_clone: self.ln_miss(task),
            clones_alive: 0,
            may_receive_clones: true,
        };
        GreedyJob {
            max_clones,
            ln_pocd_rest: rest.map(|task| ln_task_pocd(self.ln_miss(task))).sum(),
            ln_pocd_target: f64::INFINITY,
            tasks: candidates.iter().map(candidate).collect(),
        }
    }
}

/// A live job: its position in the case, and the job.
type Live = Vec<(usize, TaskLevelJob)>;

/// Shed+ Algorithm 1 in all modes.
pub fn alloc_task(case: &mut Case) {
    let jobs: Vec<TaskLevelJob> = items(&case.input["jobs"]).map(TaskLevelJob::read).collect();
    let total = jobs.len();
    let (past, live): (Live, Live) = jobs
        .into_iter()
        .enumerate()
        .partition(|(_, job)| job.is_past_deadline());
    let killed: Vec<usize> = past.iter().map(|&(position, _)| position).collect();
    case.expect_exact("killed", &json!(killed));

    let unfinished_only = case.input["base"] == "unfinished";
    let base = live
        .iter()
        .map(|(_, job)| job.base_attempts(unfinished_only))
        .sum();
    let kappa = kappa(case, base, live.len());
    let max_clones = max_clones(case);
    let input = GreedyInput {
        kappa,
        jobs: live
            .iter()
            .map(|(_, job)| job.greedy_job(max_clones))
            .collect(),
    };
    let modes = [
        ("paper", GreedyMode::Paper),
        ("guarded", GreedyMode::Guarded),
        ("maxmin", GreedyMode::MaxMin),
        ("marginal", GreedyMode::Marginal),
    ];
    let guarded = alloc_task_of(&input, GreedyMode::Guarded);
    let hopeless: Vec<usize> = guarded
        .refused
        .iter()
        .filter(|refusal| refusal.reason == RefusalReason::Hopeless)
        .map(|refusal| live[refusal.job].0)
        .collect();
    case.expect_exact("hopeless", &json!(hopeless));
    for (name, mode) in modes {
        let wanted = case.output(name);
        let outcome = alloc_task_of(&input, mode);
        compare_mode(case, name, wanted, &outcome, &live, total, &hopeless);
        killed_have_no_pocd(case, name, wanted, &killed);
    }
    compare_with_optimum(case, &input, &hopeless, &live);
}

fn killed_have_no_pocd(case: &mut Case, name: &str, wanted: &Value, killed: &[usize]) {
    for position in killed {
        for key in ["pocd", "ln_pocd"] {
            let what = format!("{name}.{key}[{position}]");
            case.same(&what, &Value::Null, &wanted[key][position]);
        }
    }
}

fn compare_mode(
    case: &mut Case,
    name: &str,
    wanted: &Value,
    outcome: &GreedyOutcome,
    live: &Live,
    total: usize,
    hopeless: &[usize],
) {
    let mut clones: Vec<Value> = vec![Value::Null; total];
    let mut steps = Vec::new();
    for ((position, job), result) in live.iter().zip(&outcome.jobs) {
        let mut per_task = vec![0; job.phis.len()];
        for (task, &count) in job.candidates().into_iter().zip(&result.clones) {
            per_task[task] = count;
        }
        clones[*position] = json!(per_task);
    }
    for step in outcome.steps.iter().take(12) {
        let (position, job) = &live[step.job];
        steps.push(json!([position, job.candidates()[step.task]]));
    }
    case.same(&format!("{name}.r"), &json!(clones), &wanted["r"]);
    case.same(
        &format!("{name}.omega"),
        &json!(outcome.omega),
        &wanted["omega"],
    );
    case.same(
        &format!("{name}.first_steps"),
        &json!(steps),
        &wanted["first_steps"],
    );

    compare_pocds(case, name, wanted, outcome, live, hopeless);
}

fn compare_pocds(
    case: &mut Case,
    name: &str,
    wanted: &Value,
    outcome: &GreedyOutcome,
    live: &Live,
    hopeless: &[usize],
) {
    let mut sums = (0.0, 0.0, f64::INFINITY);
    for ((position, _), result) in live.iter().zip(&outcome.jobs) {
        let ln_pocd = result.ln_pocd_after;
        let pocd = probability(ln_pocd);
        let ln_wanted = wanted["ln_pocd"][position].as_f64().unwrap_or(NEVER);
        case.close_ln(&format!("{name}.ln_pocd[{position}]"), ln_pocd, ln_wanted);
        case.close_pocd(
            &format!("{name}.pocd[{position}]"),
            pocd,
            number(&wanted["pocd"][position]),
        );
        if !hopeless.contains(position) {
            sums = (sums.0 + pocd, sums.1 + ln_pocd, sums.2.min(pocd));
        }
    }
    case.close_pocd(
        &format!("{name}.sum_pocd"),
        sums.0,
        number(&wanted["sum_pocd"]),
    );
    case.close_pocd(
        &format!("{name}.sum_ln_pocd"),
        sums.1,
        number(&wanted["sum_ln_pocd"]),
    );
    let least = wanted["min_pocd"].as_f64().unwrap_or(f64::INFINITY);
    case.close_pocd(&format!("{name}.min_pocd"), sums.2, least);
}

/// `Marginal` and `MaxMin` promise the optimum of Σ ln PoCD and of the least PoCD. The optimum of Σ
/// PoCD comes from a knapsack over the jobs' curves. For tiny instances, all three come from trying
/// every allocation. They leave out hopeless jobs.
fn compare_with_optimum(case: &mut Case, input: &GreedyInput, hopeless: &[usize], live: &Live) {
    let is_able = |index: &usize| !hopeless.contains(&live[*index].0);
    let able: Vec<usize> = (0..live.len()).filter(is_able).collect();
    let jobs: Vec<&GreedyJob> = able.iter().map(|&index| &input.jobs[index]).collect();
    let capacity = usize::try_from(input.kappa).unwrap_or(0);
    let wanted = case.output("exact_alpha0");
    if jobs.is_empty() {
        case.same("exact_alpha0", &Value::Null, wanted);
    } else {
        let curves: Vec<Curve> = jobs.iter().map(|job| curve(job, capacity)).collect();
        let best = knapsack(&curves, capacity, Total::Sum);
        case.close_pocd("exact_alpha0", best, number(wanted));
    }
    let brute = case.output("brute");
    if brute.is_null() {
        return;
    }
    let optima = enumerate(&jobs, capacity as u64);
    case.same("brute.count", &json!(optima.count), &brute["count"]);
    let ln_pocds = |mode| {
        let outcome = alloc_task_of(input, mode).jobs;
        able.iter()
            .map(|&index| outcome[index].ln_pocd_after)
            .collect::<Vec<f64>>()
    };
    let marginal: f64 = ln_pocds(GreedyMode::Marginal).iter().sum();
    let maxmin = ln_pocds(GreedyMode::MaxMin)
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    for (what, got, key) in [
        ("brute.alpha0", optima.sum, "alpha0"),
        ("brute.alpha1", optima.sum_ln, "alpha1"),
        ("brute.maxmin", optima.least, "maxmin"),
        ("marginal against brute.alpha1", marginal, "alpha1"),
        ("maxmin against brute.maxmin", probability(maxmin), "maxmin"),
    ] {
        case.close_pocd(what, got, number(&brute[key]));
    }
}

/// A job's best PoCD with 0, 1, … clones: the prefixes of its own order of gains.
fn curve(job: &GreedyJob, capacity: usize) -> Curve {
    let alone = GreedyInput {
        kappa: capacity as i64,
        jobs: vec![job.clone()],
    };
    let outcome = alloc_task_of(&alone, GreedyMode::Marginal);
    let mut ln_pocd = outcome.jobs[0].ln_pocd_before;
    let mut values = vec![probability(ln_pocd)];
    for gain in gains(&alone.jobs, &outcome.steps) {
        ln_pocd += gain.ln_pocd;
        values.push(probability(ln_pocd));
    }
    Curve { values, weight: 1 }
}

/// Shed Algorithm 1.
pub fn alloc_job(case: &mut Case) {
    let read = |value: &Value| {
        let slack = number(&value["deadline"]) - number(&value["tau"]);
        let (phi, t_min) = (number(&value["phi"]), number(&value["t_min"]));
        let beta = value["beta"].as_f64().unwrap_or(f64::INFINITY);
        let job = JobLevelJob {
            tasks: count(&value["n"]),
            ln_miss_attempt: ln_miss(phi, t_min, slack, beta),
        };
        (slack <= 0.0 && phi < 1.0, job)
    };
    let jobs: Vec<(bool, JobLevelJob)> = items(&case.input["jobs"]).map(read).collect();
    let (killed, live): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(|&job| jobs[job].0);
    case.expect_exact("killed", &json!(killed));
    let live_jobs: Vec<JobLevelJob> = live.iter().map(|&position| jobs[position].1).collect();
    let base = live_jobs.iter().map(|job| u64::from(job.tasks)).sum();
    let input = JobLevelInput {
        kappa: kappa(case, base, live.len()),
        max_clones: max_clones(case),
        jobs: live_jobs,
    };
    for (name, mode) in [
        ("paper", JobLevelMode::Paper),
        ("guarded", JobLevelMode::Guarded),
    ] {
        let wanted = case.output(name);
        let outcome = alloc_job_of(&input, mode);
        let mut clones = vec![Value::Null; jobs.len()];
        for (index, &position) in live.iter().enumerate() {
            clones[position] = json!(outcome.clones[index]);
            let ln_pocd = outcome.ln_pocd[index];
            let ln_wanted = wanted["ln_pocd"][position].as_f64().unwrap_or(NEVER);
            case.close_ln(&format!("{name}.ln_pocd[{position}]"), ln_pocd, ln_wanted);
            let pocd = number(&wanted["pocd"][position]);
            case.close_pocd(
                &format!("{name}.pocd[{position}]"),
                probability(ln_pocd),
                pocd,
            );
        }
        case.same(&format!("{name}.r"), &json!(clones), &wanted["r"]);
        case.same(
            &format!("{name}.omega"),
            &json!(outcome.omega),
            &wanted["omega"],
        );
        killed_have_no_pocd(case, name, wanted, &killed);
    }
    compare_with_job_level_optimum(case, &input);
}

/// The optima over r of all jobs that are not hopeless; Algorithm 1 of Shed promises the max-min.
fn compare_with_job_level_optimum(case: &mut Case, input: &JobLevelInput) {
    let able: Vec<&JobLevelJob> = input
        .jobs
        .iter()
        .filter(|job| job.ln_miss_attempt < 0.0)
        .collect();
    let exact = case.output("exact");
    if able.is_empty() {
        return case.same("exact", &Value::Null, exact);
    }
    let capacity = usize::try_from(input.kappa).unwrap_or(0);
    let best = |total: Total, value: fn(f64) -> f64| {
        let curve = |job: &&JobLevelJob| {
            let most = (capacity as u32 / job.tasks).min(input.max_clones);
            let ln_pocd = |r: u32| ln_job_pocd_uniform(job.ln_miss_attempt, r + 1, job.tasks);
            Curve {
                values: (0..=most).map(|r| value(ln_pocd(r))).collect(),
                weight: job.tasks as usize,
            }
        };
        let curves: Vec<Curve> = able.iter().map(curve).collect();
        knapsack(&curves, capacity, total)
    };
    let guarded = alloc_job_of(input, JobLevelMode::Guarded).ln_pocd;
    let possible = guarded.into_iter().filter(|ln_pocd| ln_pocd.is_finite());
    let least = possible.fold(f64::INFINITY, f64::min);
    for (what, got, key) in [
        ("exact.alpha0", best(Total::Sum, probability), "alpha0"),
        (
            "exact.alpha1",
            best(Total::Sum, |ln_pocd| ln_pocd),
            "alpha1",
        ),
        ("exact.maxmin", best(Total::Least, probability), "maxmin"),
        ("guarded against exact.maxmin", probability(least), "maxmin"),
    ] {
        case.close_pocd(what, got, number(&exact[key]));
    }
}

fn kappa(case: &mut Case, base: u64, jobs: usize) -> i64 {
    let usable = usable_slots(case.number("lambda"), case.count("m"));
    let kappa = clone_capacity(usable, base, jobs as u64);
    case.expect_exact("kappa", &json!(kappa));
    kappa
}

fn max_clones(case: &Case) -> u32 {
    let cap = &case.input["r_max"];
    if cap.is_null() { u32::MAX } else { count(cap) }
}
