//! Every trace that the project knows is read completely; counts and medians are those of its statistics.

use crate::shared::shared_trace;
use shed_sim::trace::{self, Trace};

struct Expected {
    file: &'static str,
    jobs: usize,
    tasks: usize,
}

fn read(file: &str) -> Option<Trace> {
    shared_trace(file).map(|path| trace::read(&path).unwrap_or_else(|error| panic!("{error}")))
}

fn tasks(trace: &Trace) -> usize {
    trace.jobs.iter().map(trace::Job::tasks).sum()
}

#[test]
fn every_trace_has_the_jobs_and_tasks_of_its_statistics() {
    for expected in [
        Expected {
            file: "google2011_hawk_a.csv.gz",
            jobs: 5000,
            tasks: 228_415,
        },
        Expected {
            file: "yahoo_hawk_yh1.csv.gz",
            jobs: 2910,
            tasks: 122_878,
        },
        Expected {
            file: "google2011_part0_a.csv.gz",
            jobs: 561,
            tasks: 29_641,
        },
        Expected {
            file: "fb2010_coflow_a.csv.gz",
            jobs: 340,
            tasks: 5356,
        },
        Expected {
            file: "alibaba2017_a_stages.csv.gz",
            jobs: 1480,
            tasks: 471_689,
        },
        Expected {
            file: "spark_bdb_a.csv.gz",
            jobs: 3,
            tasks: 6853,
        },
        Expected {
            file: "workflows_a.csv.gz",
            jobs: 18,
            tasks: 3235,
        },
        // 17 605 tasks of first waves and 50 791 of others at 50 executors, with which one of the
        // 66 queries was never run.
        Expected {
            file: "tpch_decima_a.csv.gz",
            jobs: 65,
            tasks: 68_396,
        },
        // 192 succeeded and 1870 failed.
        Expected {
            file: "alibaba_k8s_pods.csv.gz",
            jobs: 2062,
            tasks: 2062,
        },
    ] {
        if let Some(trace) = read(expected.file) {
            assert_eq!(trace.jobs.len(), expected.jobs, "{}", expected.file);
            assert_eq!(tasks(&trace), expected.tasks, "{}", expected.file);
        }
    }
}

#[test]
fn swim_jobs_are_expanded_to_their_blocks() {
    for (file, jobs) in [
        ("fb2009_swim_0_jobs.csv.gz", 5894),
        ("fb2010_swim_0_jobs.csv.gz", 24_442),
    ] {
        let Some(trace) = read(file) else { continue };
        assert_eq!(trace.jobs.len(), jobs);
        let mut maps: Vec<usize> = trace
            .jobs
            .iter()
            .map(|job| job.stages[0].durations.len())
            .collect();
        maps.sort_unstable();
        let expected = if jobs == 5894 { [1, 5] } else { [1, 228] };
        let at = |percent: usize| maps[maps.len() * percent / 100];
        assert_eq!([at(50), at(90)], expected, "{file}");
    }
}

#[test]
fn jobs_drawn_from_distributions_have_stages_in_levels() {
    let Some(trace) = read("alibaba2018_distributions.csv.gz") else {
        return;
    };
    assert_eq!(trace.jobs.len(), 2000);
    for job in &trace.jobs {
        for (position, stage) in job.stages.iter().enumerate() {
            assert!(stage.parents.iter().all(|&parent| parent < position));
            assert!(!stage.durations.is_empty());
        }
    }
    // The median of task_num is 2; 1000 of 2000 samples lie at or below it within five errors.
    let small = trace
        .jobs
        .iter()
        .filter(|job| job.stages.len() <= 2)
        .count();
    assert!((900..=1400).contains(&small), "{small}");
}

#[test]
fn attempts_of_a_task_are_kept_as_they_happened() {
    let Some(trace) = read("google2011_part0_a.csv.gz") else {
        return;
    };
    let stages = || trace.jobs.iter().flat_map(|job| &job.stages);
    let recorded: usize = stages().map(|stage| stage.recorded.len()).sum();
    assert!(recorded > 0);
    let longest = stages().flat_map(|stage| stage.recorded.values());
    let longest = longest.map(Vec::len).max();
    assert_eq!(longest, Some(182), "attempts of the task with the most");
}
