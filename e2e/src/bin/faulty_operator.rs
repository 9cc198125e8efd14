//! The operator with a policy that panics, so that the alert ShedPlanningFails fires:
//! `faulty_operator operator --policy faulty`.

use clap::Parser;
use shed_core::policy::{Judgement, PolicyRule, Recall, Registry};
use shed_core::round::JobView;

#[derive(Debug, Clone, PartialEq)]
struct Faulty;

impl PolicyRule for Faulty {
    type Belief = ();
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "faulty"
    }

    fn max_clones(&self) -> u32 {
        0
    }

    fn judge(&self, _: &JobView<'_>, _: &Recall<'_, ()>) -> Judgement<()> {
        panic!("the fault of this policy")
    }
}

fn main() -> anyhow::Result<()> {
    shed::cli::Args::parse().run_with(&Registry::default().with(Faulty))
}
