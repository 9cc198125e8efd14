//! What the planner has learned from past jobs.

use shed_core::ids::Tenant;
use shed_core::memory::{Arrival, Arrivals, Memory};

use super::*;

/// A memory with one job that came before.
fn before() -> Memory {
    let mut arrivals = Arrivals::default();
    let arrival = Arrival {
        submitted: Instant(1000),
        volume: 30.0,
    };
    arrivals.note(&JobKey::from("before"), &Tenant::from("team"), arrival);
    let mut memory = Memory::default();
    memory.set_arrivals(arrivals);
    memory
}

#[tokio::test(start_paused = true)]
async fn a_term_continues_from_the_stored_experience() {
    let (_api, process) = cluster(|_| {});
    let context = &process.context.shared;
    context.experience.set(before().durable(Instant(5000)));
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(context), Policy::default(), touched));
    let first = timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    assert_eq!(first.unwrap().name, "count");
    let left = context.experience.get();
    assert!(left.as_of > Instant(5000), "{left:?}");
    let memory = Memory::restored(left, vec![], []);
    let keys: Vec<&str> = memory.arrivals().iter().map(|(key, _)| &*key.0).collect();
    assert_eq!(keys, ["before"]);
    planner.abort();
}
