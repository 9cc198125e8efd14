//! The sum over the jobs that the optimizer maximizes.

use super::policy;
use shed_core::fixtures::{World, attempt, brief, job, plan_of, world};
use shed_core::memory::Memory;

/// One slot for two jobs of one straggler each: `a` can hardly be saved, `b` well.
fn rivals() -> World {
    let straggler = |key: &str, node, deadline| {
        let slow = attempt(0).on(node).progress(0.1, 29.0);
        let job = job(key).tasks(1).deadline_in(deadline).task(0, [slow]);
        job.ended_runs([20.0, 22.0, 25.0, 30.0, 40.0])
    };
    let both = world(30.0, 3, 1000).job(straggler("a", 0, 50.0));
    both.job(straggler("b", 1, 90.0))
}

#[test]
fn alpha_lies_between_the_sum_and_the_lowest() {
    let served = |utility: &str| {
        let policy = policy(&format!("shed-plus{{{utility}}}"));
        brief(&plan_of(&rivals().build(), &Memory::default(), &policy).0)
    };
    assert_eq!(served("utility=sum"), ["b: clone 0"]);
    assert_eq!(served("utility=maxmin"), ["a: clone 0"]);
    assert_eq!(served("utility=alpha,alpha=0"), ["b: clone 0"]);
    assert_eq!(served("utility=alpha,alpha=100"), ["a: clone 0"]);
    let proportional = served("utility=proportional");
    assert_eq!(served("utility=alpha,alpha=1"), proportional);
}
