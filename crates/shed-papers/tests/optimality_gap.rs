//! The gap of each greedy to the optimal allocation, over 1 000 random instances with slots and as many with two
//! resources. `--nocapture` shows the tables.

use shed_core::estimate::pocd::probability;
use shed_core::resources::Resources;
use shed_papers::optimize::alpha_fair::{Stride, alloc_alpha_fair};
use shed_papers::optimize::clone_capacity::CloneCapacity;
use shed_papers::optimize::greedy::{GreedyJob, GreedyMode, GreedyTask, alloc_task_within};
use shed_papers::optimize::utility::alpha_fair;

#[path = "optimizer/exact.rs"]
mod exact;
#[path = "optimizer/instances.rs"]
#[expect(dead_code, reason = "the benchmarks draw larger inputs from it")]
mod instances;

use exact::{Instance, joined, neutral, optimum, tried};
use instances::Random;

const INSTANCES: usize = 1_000;

const OBJECTIVES: [f64; 5] = [0.0, 0.5, 1.0, 2.0, f64::INFINITY];

#[derive(Clone, Copy)]
enum Rule {
    Mode(GreedyMode),
    Fair(f64, Stride),
}

const RULES: [(&str, Rule); 8] = [
    ("paper", Rule::Mode(GreedyMode::Paper)),
    ("guarded", Rule::Mode(GreedyMode::Guarded)),
    ("maxmin", Rule::Mode(GreedyMode::MaxMin)),
    ("marginal", Rule::Mode(GreedyMode::Marginal)),
    ("α 0 by clone", Rule::Fair(0.0, Stride::Clone)),
    ("α 0 by bundle", Rule::Fair(0.0, Stride::Bundle)),
    ("α 0.5 by bundle", Rule::Fair(0.5, Stride::Bundle)),
    ("α 2 by bundle", Rule::Fair(2.0, Stride::Bundle)),
];

/// A task of one of four kinds: mild, bad, nearly hopeless, and one that only a clone can rescue.
fn any_task(random: &mut Random) -> GreedyTask {
    let miss = match random.below(20) {
        0..12 => random.between(0.02, 0.9),
        12..18 => random.between(0.9, 0.999),
        18 => 1.0,
        _ => random.between(1e-9, 0.02),
    };
    let alike = random.below(2) == 0;
    let clone = if alike && miss < 1.0 {
        miss
    } else {
        random.between(0.05, 0.98)
    };
    GreedyTask {
        ln_miss_present: libm::log(miss),
        ln_miss_per_clone: libm::log(clone),
        clones_alive: random.below(2) as u32,
        may_receive_clones: random.below(10) > 0 || miss >= 1.0,
    }
}

fn any_instance(random: &mut Random, jobs: usize, tasks: usize, slots: bool) -> Instance {
    let jobs = random.below(jobs) + 1;
    let mut job = |_| GreedyJob {
        max_clones: random.below(3) as u32 + 2,
        ln_pocd_rest: -random.between(0.0, 0.3),
        ln_pocd_target: f64::INFINITY,
        tasks: (0..random.below(tasks) + 1)
            .map(|_| any_task(random))
            .collect(),
    };
    let jobs: Vec<GreedyJob> = (0..jobs).map(&mut job).collect();
    let (free, demands) = if slots {
        ([random.below(12) + 1, 0], vec![[1, 0]; jobs.len()])
    } else {
        let free = [random.below(20) + 4, random.below(20) + 4];
        let demand = |_| [random.below(4) + 1, random.below(4) + 1];
        (free, (0..jobs.len()).map(demand).collect())
    };
    Instance {
        jobs,
        free,
        demands,
    }
}

fn capacity(instance: &Instance) -> CloneCapacity {
    let amounts = |[a, b]: [usize; 2]| Resources::from_pairs([("a", a as i64), ("b", b as i64)]);
    let demands: Vec<Resources> = instance.demands.iter().map(|&d| amounts(d)).collect();
    CloneCapacity::vector(&amounts(instance.free), &demands.iter().collect::<Vec<_>>())
}

/// ln PoCD per job.
fn solved(instance: &Instance, rule: Rule) -> Vec<f64> {
    let outcome = match rule {
        Rule::Mode(mode) => alloc_task_within(&instance.jobs, capacity(instance), mode),
        Rule::Fair(alpha, stride) => {
            alloc_alpha_fair(&instance.jobs, capacity(instance), alpha, stride)
        }
    };
    outcome.jobs.iter().map(|job| job.ln_pocd_after).collect()
}

fn utility(ln_pocds: &[f64], alpha: f64) -> f64 {
    let utilities = ln_pocds
        .iter()
        .map(|&ln| alpha_fair(probability(ln), alpha));
    utilities.fold(neutral(alpha), |one, other| joined(alpha, one, other))
}

/// The PoCD that, if all jobs had it, would give the same utility: it makes gaps in different utilities comparable.
fn equivalent(utility: f64, alpha: f64, jobs: usize) -> f64 {
    let mean = utility / jobs as f64;
    if alpha.is_infinite() {
        utility
    } else if alpha == 1.0 {
        libm::exp(mean)
    } else {
        libm::pow((1.0 - alpha) * mean, 1.0 / (1.0 - alpha))
    }
}

/// Gaps of one rule in one objective, as shares of the optimum's equivalent PoCD.
#[derive(Default, Clone)]
struct Gaps(Vec<f64>);

impl Gaps {
    fn shown(&mut self) -> String {
        self.0.sort_by(f64::total_cmp);
        let count = self.0.len();
        let mean = self.0.iter().sum::<f64>() / count as f64;
        let percent =
            [mean, self.0[count * 99 / 100], self.0[count - 1]].map(|gap| (100.0 * gap).max(0.0));
        format!(
            "{:>6.2} {:>6.2} {:>6.2}",
            percent[0], percent[1], percent[2]
        )
    }
}

/// The rules with proven optimality: max-min for any demands, Σ U_α for α ≥ 1 if all attempts take the same.
fn is_proven(rule: Rule, alpha: f64, slots: bool) -> bool {
    match rule {
        Rule::Mode(GreedyMode::MaxMin) => alpha.is_infinite(),
        Rule::Mode(GreedyMode::Marginal) => slots && alpha == 1.0,
        Rule::Fair(of, Stride::Bundle) => slots && of >= 1.0 && alpha == of,
        _ => false,
    }
}

fn measure(slots: bool) {
    let mut random = Random(if slots { 1 } else { 2 });
    let mut all = vec![Gaps::default(); RULES.len() * OBJECTIVES.len()];
    for number in 0..INSTANCES {
        let instance = any_instance(&mut random, 5, 4, slots);
        let jobs = instance.jobs.len();
        let results: Vec<Vec<f64>> = RULES.iter().map(|r| solved(&instance, r.1)).collect();
        for (column, &alpha) in OBJECTIVES.iter().enumerate() {
            let best = equivalent(optimum(&instance, alpha), alpha, jobs);
            if best <= 0.0 {
                continue;
            }
            for (row, ((name, rule), result)) in RULES.iter().zip(&results).enumerate() {
                let gap = 1.0 - equivalent(utility(result, alpha), alpha, jobs) / best;
                assert!(
                    gap > -1e-9,
                    "instance {number}: {name} beats the optimum: {gap}"
                );
                if is_proven(*rule, alpha, slots) {
                    assert!(gap < 1e-9, "instance {number}: {name}, α {alpha}: {gap}");
                }
                all[row * OBJECTIVES.len() + column].0.push(gap);
            }
        }
    }
    let counts: Vec<usize> = all[..OBJECTIVES.len()]
        .iter()
        .map(|gaps| gaps.0.len())
        .collect();
    println!(
        "\n{}: gap to the optimum in % of its equivalent PoCD (mean, p99, worst)",
        if slots { "slots" } else { "two resources" }
    );
    print!("{:<16}", "");
    for (alpha, count) in OBJECTIVES.iter().zip(counts) {
        print!(" | {:>20}", format!("α {alpha}, {count} cases"));
    }
    println!();
    for ((name, _), row) in RULES.iter().zip(all.chunks_mut(OBJECTIVES.len())) {
        let shown: Vec<String> = row.iter_mut().map(Gaps::shown).collect();
        println!("{name:<16} | {}", shown.join(" | "));
    }
}

#[test]
fn the_gaps_with_slots_are_as_proven_and_are_shown() {
    measure(true);
}

#[test]
fn the_gaps_with_two_resources_are_as_proven_and_are_shown() {
    measure(false);
}

#[test]
fn the_exact_reference_is_what_trying_everything_finds() {
    let mut random = Random(3);
    for number in 0..200 {
        let instance = any_instance(&mut random, 2, 2, number % 2 == 0);
        for alpha in OBJECTIVES {
            let (one, other) = (optimum(&instance, alpha), tried(&instance, alpha));
            let is_same = one == other || (one - other).abs() <= 1e-12 * one.abs().max(1.0);
            assert!(is_same, "instance {number}, α {alpha}: {one}, not {other}");
        }
    }
}
