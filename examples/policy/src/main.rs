//! A policy of one's own, in one file, run in the simulator next to shed's:
//!
//! ```sh
//! cargo run -- compare --trace 'setup:A{jobs=12}' --slots 24 --load 0.8 --policy hadoop-ns,twice
//! ```
//!
//! `twice` gives every task whose attempt needs more than `factor` mean durations one clone.

use std::process::ExitCode;

use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall, Registry};
use shed_core::round::JobView;
use shed_core::round::clones::{Ask, MODES};
use shed_core::settings::Setting;
use shed_core::time::Span;

/// The policy with its parameters.
#[derive(Debug, Clone, PartialEq)]
struct Twice {
    /// How many mean durations an attempt may still need before its task gets a clone.
    factor: f64,
}

/// What it believes of a job: the time left from which on a task gets a clone, in seconds.
type Limit = Option<f64>;

impl PolicyRule for Twice {
    type Belief = Limit;
    // It remembers nothing.
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "twice"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![Setting::number("factor", &mut self.factor, 0.0, 100.0)]
    }

    fn max_clones(&self) -> u32 {
        1
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, ()>) -> Judgement<Limit> {
        Judgement {
            belief: job.estimate.mean_run.map(|mean| mean * self.factor),
            ..Judgement::every(Span::from_seconds(3), job, recall)
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let limits: Vec<Limit> = (0..desk.jobs().len())
            .map(|position| desk.belief(position).copied().flatten())
            .collect();
        let wants = |position: usize, left: Option<f64>| {
            let limit = limits.get(position).copied().flatten();
            left.zip(limit).is_some_and(|(left, limit)| left > limit)
        };
        for mode in MODES {
            let ask = Ask::blind(self.max_clones());
            let jobs = desk.clone_jobs(mode, ask, |at, _, task| wants(at, task.remaining()));
            for mut job in jobs {
                for task in 0..job.tasks.len() {
                    let copies = Finding::Copies { copies: 2 };
                    desk.request(&mut job, task, copies);
                }
                desk.refuse_rest(&mut job, RefusalReason::Capacity);
            }
        }
    }
}

fn main() -> ExitCode {
    shed_sim::policies::install(Registry::default().with(Twice { factor: 1.5 }));
    shed_sim::cli::main()
}
