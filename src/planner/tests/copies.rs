//! Copies of the planner's state for readers.

use super::*;

/// Two passes, between them this. Returns the facts, the memory and the reports after the second one.
fn passed(between: impl FnOnce(&Passes)) -> (Snapshot, Memory, Option<JobReport>) {
    let (api, process) = cluster(|_| {});
    let context = Arc::clone(&process.context.shared);
    let (touched, _jobs) = mpsc::unbounded_channel();
    let policy: Policy = "shed-prime".parse().unwrap();
    let mut passes = Passes::begin(Arc::clone(&context), policy, touched);
    passes.pass();
    between(&passes);
    passes.pass();
    let copy = passes.copy();
    let uid = api.job().metadata.uid.clone().unwrap();
    (copy.snapshot, copy.memory, context.plan_slices.report(&uid))
}

#[tokio::test(start_paused = true)]
async fn a_reader_changes_neither_the_next_plan_nor_the_memory() {
    let plain = passed(|_| {});
    let asked = passed(|passes| {
        let copy = passes.copy();
        let before = (copy.snapshot.clone(), copy.memory.clone());
        let (plan, _) = decide(&copy.snapshot, copy.memory, &copy.policy);
        assert_eq!(plan.report.jobs.len(), 1);
        assert_eq!((passes.copy().snapshot, passes.copy().memory), before);
    });
    assert_eq!(plain.0.jobs.len(), 1);
    // The clocks of the two processes differ by moments.
    let without_times = |(snapshot, memory, report): (Snapshot, Memory, Option<JobReport>)| {
        let report = report.map(|report| (report.pocd_after, report.waiting, report.clones));
        let tasks = snapshot.jobs[0].tasks.iter();
        let attempts = tasks.flat_map(|task| {
            let attempts = task.attempts.iter();
            attempts.map(|attempt| (task.index, attempt.number, attempt.kind))
        });
        (attempts.collect::<Vec<_>>(), memory.len(), report)
    };
    assert_eq!(without_times(asked), without_times(plain));
}

#[tokio::test(start_paused = true)]
async fn a_reader_gets_a_copy_between_two_passes() {
    let (_api, process) = cluster(|_| {});
    let context = Arc::clone(&process.context.shared);
    let (touched, _jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&context), policy(), touched));
    let copy = timeout(A_WHILE, context.copies.copy()).await.expect("soon");
    let copy = copy.unwrap();
    assert_eq!(
        (copy.snapshot.jobs.len(), copy.snapshot.nodes.len()),
        (1, 1)
    );
    assert_eq!(copy.policy, policy());
    let passes = &context.metrics.planning.pass_seconds;
    let before = passes.get_sample_count();
    for _ in 0..5 {
        assert!(context.copies.copy().await.is_some());
    }
    assert_eq!(passes.get_sample_count(), before, "a copy needs no pass");
    planner.abort();
}
