//! The policy `twice`: a task whose attempt needs more than `factor` mean durations gets one clone.
use std::process::ExitCode;

use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::time::Span;

#[derive(Debug, Clone, PartialEq)]
struct Twice {
    factor: f64,
}

impl PolicyRule for Twice {
    // What it derives from each job, and what it remembers from pass to pass: nothing.
    type Belief = ();
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

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, ()>) -> Judgement<()> {
        Judgement::every(Span::from_seconds(3), job, recall)
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let is_slow = |_: usize, job: &JobView<'_>, task: &TaskEstimate| {
            let seconds = task.remaining().zip(job.estimate.mean_run);
            seconds.is_some_and(|(left, mean)| left > self.factor * mean)
        };
        for mode in MODES {
            for mut job in desk.clone_jobs(mode, Ask::blind(self.max_clones()), is_slow) {
                for task in 0..job.tasks.len() {
                    desk.request(&mut job, task, Finding::Copies { copies: 2 });
                }
                desk.refuse_rest(&mut job, RefusalReason::Capacity);
            }
        }
    }
}

fn main() -> ExitCode {
    shed_sim::policies::install(shed_papers::registry().with(Twice { factor: 1.5 }));
    shed_sim::cli::main()
}
