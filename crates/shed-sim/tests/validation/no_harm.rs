//! shed-prime meets the deadlines that no clones meet, where clones cannot help: jobs of equal tasks, whose
//! users state how long they take. Each workload was one on which it met almost none.

use std::sync::Arc;

use shed_core::snapshot::ExpectedDuration;
use shed_core::time::Span;
use shed_sim::outcome::Outcome;
use shed_sim::settings::{Delay, Reports, Resuming, Settings};
use shed_sim::trace::Job;

use crate::common::{fifo, flowtimes, job, on_slots, run};

/// A job of equal tasks. Times in seconds.
struct Stated {
    name: String,
    arrival: i64,
    tasks: usize,
    duration: i64,
    deadline: i64,
}

impl Stated {
    fn job(&self) -> Job {
        let duration = Span::from_seconds(self.duration);
        Job {
            id: Arc::from(&*self.name),
            deadline: Some(Span::from_seconds(self.deadline)),
            expected: Some(ExpectedDuration::new(duration, None).unwrap()),
            ..job(0, 1000 * self.arrival, &vec![duration.0; self.tasks])
        }
    }
}

/// Jobs of that number of tasks of 600 s, with these arrivals and deadlines.
fn large(tasks: usize, jobs: impl Iterator<Item = (i64, i64)>) -> Vec<Job> {
    let jobs = jobs
        .zip(0..)
        .map(|((arrival, deadline), number): (_, u32)| {
            let job = Stated {
                name: format!("j{number:04}"),
                arrival,
                tasks,
                duration: 600,
                deadline,
            };
            job.job()
        });
    jobs.collect()
}

/// shed-prime with launches of 5 s and without reports.
fn prime_on(slots: u32) -> Settings {
    Settings {
        launch_overhead: Delay::Fixed(Span::from_seconds(5)),
        reports: None,
        check: false,
        ..on_slots("shed-prime".parse().expect("a policy"), slots)
    }
}

fn met(outcome: &Outcome) -> usize {
    outcome.jobs.iter().filter(|job| job.met()).count()
}

#[test]
fn feasible_jobs_with_stated_durations_are_all_in_time() {
    // One job each minute keeps 3025 slots busy.
    let jobs = large(300, (0..30).map(|number| (60 * number, 800)));
    let prime = prime_on(3300);
    let without = Settings {
        policy: fifo(),
        ..prime.clone()
    };
    assert_eq!(met(&run(&without, &jobs)), 30);
    assert_eq!(met(&run(&prime, &jobs)), 30);
}

#[test]
fn hopeless_jobs_keep_no_slot_from_each_other() {
    let jobs = large(300, (0..20).map(|_| (0, 300)));
    let outcome = run(&prime_on(6000), &jobs);
    // The cluster holds all tasks, so each starts at once: after 5 s it takes 600 s.
    assert_eq!(flowtimes(&outcome), [605_000; 20]);
}

#[test]
fn feasible_jobs_between_hopeless_ones_are_in_time() {
    let deadline = |number| if number % 2 == 0 { 1500 } else { 300 };
    let jobs = large(100, (0..80).map(|number| (20 * number, deadline(number))));
    assert_eq!(met(&run(&prime_on(5000), &jobs)), 40);
}

#[test]
fn reports_that_err_cost_no_deadline_while_slots_are_free() {
    // Each first attempt takes 95 to 105 s and is in time; a clone takes as long.
    let times = |number: i64| (0..12).map(move |task| 95_000 + (7 * number + 3 * task) % 11 * 1000);
    let jobs = (0..10usize).map(|number| Job {
        deadline: Some(Span::from_seconds(111)),
        ..job(
            number,
            130_000 * number as i64,
            &times(number as i64).collect::<Vec<_>>(),
        )
    });
    let jobs: Vec<Job> = jobs.collect();
    for noise in [0.05, 0.2, 0.4] {
        let every = Delay::Fixed(Span::from_seconds(5));
        let prime = Settings {
            reports: Some(Reports {
                first: every,
                every,
                noise,
            }),
            resuming: Resuming::Latest,
            ..prime_on(200)
        };
        let outcome = run(&prime, &jobs);
        assert_eq!(met(&outcome), 10, "{noise}");
        assert!(outcome.totals.clones > 0, "{noise}: nothing was cloned");
    }
}
