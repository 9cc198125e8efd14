//! The limit of active jobs of a namespace.

use super::*;

/// The changes of a job that has never run.
fn waiting() -> Change {
    Change {
        launched: Some(0),
        ..Change::default()
    }
}

/// Jobs that may launch attempts in the next pass, with the number of those that begin or cease to wait.
fn active(world: &mut World, limit: Option<&str>) -> (Vec<usize>, usize) {
    let context = Arc::clone(&world.process.context.shared);
    let values = limit.map(|limit| ("team", ANNOTATION_ACTIVE_JOBS_MAX, limit));
    context.stores.show_namespaces(values.as_slice());
    let view = view_after(&context, &mut world.known);
    let is_active = |uid: &JobUid| {
        let mut jobs = view.snapshot.jobs.iter();
        jobs.any(|job| job.key.0 == *uid && job.obstacles.attempts_max.is_none())
    };
    let uids = world.uids.iter().enumerate();
    let active = uids.filter(|(_, uid)| is_active(uid)).map(|(at, _)| at);
    let active = active.collect();
    world.known.put_back(view.snapshot.jobs);
    (active, view.news.len())
}

/// Six jobs. The last two run.
fn world() -> World {
    let mut world = World::new(6);
    (0..4).for_each(|number| world.see_job(number, waiting()));
    for task in 0..TASKS {
        (0..4).for_each(|job| {
            world
                .stores()
                .see_pod(Event::Delete(pod(job, task, "runs")))
        });
    }
    world
}

#[tokio::test]
async fn jobs_over_the_limit_wait_in_order_of_submission() {
    let mut world = world();
    assert_eq!(active(&mut world, None), (vec![0, 1, 2, 3, 4, 5], 0));
    assert_eq!(active(&mut world, Some("3")), (vec![0, 4, 5], 3));
    assert_eq!(
        active(&mut world, Some("3")),
        (vec![0, 4, 5], 0),
        "the same pass again"
    );
    // The messages name the limit.
    assert_eq!(active(&mut world, Some("4")), (vec![0, 1, 4, 5], 3));
    assert_eq!(
        active(&mut world, Some("1")),
        (vec![4, 5], 4),
        "running jobs go on"
    );
    assert_eq!(
        active(&mut world, Some("x")),
        (vec![0, 1, 2, 3, 4, 5], 4),
        "no limit"
    );
}

#[tokio::test]
async fn a_place_that_comes_free_goes_to_the_first_that_waits() {
    let mut world = world();
    assert_eq!(active(&mut world, Some("3")).0, [0, 4, 5]);
    let gone = Event::Delete(watched(4, &Change::default()));
    let stores = Arc::clone(&world.process.context.stores);
    for task in 0..TASKS {
        stores.see_pod(Event::Delete(pod(4, task, "runs")));
    }
    stores.see_job(&mut world.writer, gone);
    assert_eq!(active(&mut world, Some("3")), (vec![0, 1, 5], 1));
    let suspended = Change {
        suspends: true,
        ..waiting()
    };
    world.see_job(0, suspended);
    let (now, _) = active(&mut world, Some("3"));
    assert!(now.contains(&2), "a suspended job takes no place: {now:?}");
}

#[tokio::test]
async fn a_new_process_holds_the_same_jobs_back() {
    let mut world = world();
    assert_eq!(active(&mut world, Some("3")).0, [0, 4, 5]);
    // Everything that the process remembers is lost.
    world.known = KnownJobs::following(&world.process.context.stores);
    for uid in &world.uids {
        world.process.context.job_memories.forget(uid);
    }
    world.judge_deadlines();
    assert_eq!(active(&mut world, Some("3")), (vec![0, 4, 5], 3));
}
