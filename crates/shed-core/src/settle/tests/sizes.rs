//! Jobs of many tasks: the work of `settle` grows with the tasks, and not with their square.

use std::cell::Cell;

use super::*;

/// 10 000 tasks run although only 100 may; 3 000 of them are replaced anyway, because they cannot start.
#[test]
fn lowered_parallelism_kills_each_surplus_attempt_once() {
    let tasks = 0..10_000u32;
    let builder = tasks.fold(job("a").tasks(10_000).parallelism(100), |job, task| {
        let attempt = attempt(0).launched(f64::from(task) / 1000.0);
        let attempt = match task >= 7_000 {
            true => attempt.stuck(11.0),
            false => attempt,
        };
        job.task(task, [attempt])
    });
    let job = builder.build();
    let actions = settle(at(30.0), &job);
    assert_eq!(settle_check(&job, &actions), []);
    let of = |wanted: KillKind| {
        let kills = actions.iter().filter_map(move |action| match action {
            Settled::Kill(kill) if kill.kind == wanted => Some(kill.task.0),
            _ => None,
        });
        kills.collect::<Vec<_>>()
    };
    assert_eq!(of(KillKind::Replace).len(), 3_000);
    // The tasks launched last come first, without those that are replaced.
    let surplus = of(KillKind::Surplus);
    assert!(surplus.iter().copied().eq((100..7_000).rev()));
    assert_eq!(actions.len(), 9_900);
}

#[test]
fn attempts_that_are_already_stopped_are_gathered_in_one_walk() {
    let visits = Cell::new(0);
    let actions: Vec<Settled> = (0..10_000)
        .map(|task| kill(task, 0, KillKind::Replace, None))
        .collect();
    let walked = actions.iter().inspect(|_| visits.set(visits.get() + 1));
    let doomed = surplus::doomed(walked);
    assert_eq!((doomed.len(), visits.get()), (10_000, 10_000));
}
