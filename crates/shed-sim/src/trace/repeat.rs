//! Runs drawn from templates: each job of a trace is a workflow that runs again and again. Drawn, not recorded: the
//! order of the runs, and how far the times of a run differ from those of its template.

use std::sync::Arc;

use shed_core::time::{Instant, Span};

use super::{Job, Trace};
use crate::random::{Purpose, Stream};

/// The most runs of a template.
pub const RUNS_MAX: u32 = 1000;

/// Standard deviation of the logarithm of the factor that all task times of a run share: some runs have more data.
const RUN_SIGMA: f64 = 0.2;
/// The same of the factor that the tasks of one stage of a run share.
const STAGE_SIGMA: f64 = 0.2;
/// The same of the factor of a single task.
const TASK_SIGMA: f64 = 0.2;

/// Each job becomes this many runs, in an order drawn by the seed. They have no arrivals yet. The runs of a job are one
/// class, and are numbered in their order.
pub fn repeat(trace: &mut Trace, runs: u32, seed: u64) {
    let templates = std::mem::take(&mut trace.jobs);
    let numbers = 0..templates.len();
    let mut order: Vec<usize> = numbers.flat_map(|at| vec![at; runs as usize]).collect();
    shuffle(&mut order, seed);
    let mut made = vec![0; templates.len()];
    trace.jobs = order
        .into_iter()
        .map(|at| {
            made[at] += 1;
            run(&templates[at], at as u64, made[at], seed)
        })
        .collect();
}

/// By the method of Fisher and Yates.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut stream = Stream::new(seed, Purpose::Repeat, [0, 0, 0]);
    for last in (1..order.len()).rev() {
        order.swap(last, stream.index(last + 1));
    }
}

fn run(template: &Job, position: u64, number: u64, seed: u64) -> Job {
    let stream = |stage: u64| Stream::new(seed, Purpose::Repeat, [position + 1, number, stage]);
    let of_run = factor(&mut stream(0), RUN_SIGMA);
    let mut run = Job {
        id: Arc::from(format!("{}-{number}", template.id)),
        arrival: Instant(0),
        class: Some(Arc::clone(&template.id)),
        usual: Some(template.usual_duration()),
        ..template.clone()
    };
    for (at, stage) in run.stages.iter_mut().enumerate() {
        let mut stream = stream(at as u64 + 1);
        let of_stage = of_run * factor(&mut stream, STAGE_SIGMA);
        for (task, duration) in stage.durations.iter_mut().enumerate() {
            let of_task = of_stage * factor(&mut stream, TASK_SIGMA);
            let scaled = |span: Span| Span((span.0 as f64 * of_task).round() as i64);
            *duration = scaled(*duration);
            let recorded = stage.recorded.get_mut(&(task as u32));
            for attempt in recorded.into_iter().flatten() {
                attempt.duration = scaled(attempt.duration);
            }
        }
    }
    run
}

/// Log-normal with the median 1.
fn factor(stream: &mut Stream, sigma: f64) -> f64 {
    libm::exp(sigma * stream.normal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Stage;

    fn trace() -> Trace {
        let job = |id: &str| Job {
            id: Arc::from(id),
            arrival: Instant(5),
            deadline: None,
            weight: 1.0,
            class: None,
            usual: None,
            tenant: None,
            expected: None,
            stages: vec![Stage {
                durations: vec![Span::from_seconds(100); 40],
                ..Stage::default()
            }],
        };
        Trace {
            jobs: vec![job("a"), job("b")],
        }
    }

    fn repeated(seed: u64) -> Vec<Job> {
        let mut trace = trace();
        repeat(&mut trace, 30, seed);
        trace.jobs
    }

    #[test]
    fn each_job_becomes_numbered_runs_of_one_class() {
        let runs = repeated(1);
        assert_eq!(runs.len(), 60);
        for template in ["a", "b"] {
            let of_template = |run: &&Job| run.class.as_deref() == Some(template);
            let ids: Vec<&str> = runs
                .iter()
                .filter(of_template)
                .map(|run| &*run.id)
                .collect();
            let expected: Vec<String> = (1..=30).map(|run| format!("{template}-{run}")).collect();
            assert_eq!(ids, expected);
        }
        let first = runs.iter().take(30);
        let classes: std::collections::BTreeSet<_> = first.map(|run| run.class.clone()).collect();
        assert_eq!(classes.len(), 2, "the templates alternate");
    }

    #[test]
    fn runs_differ_from_their_template_by_seed() {
        let runs = repeated(1);
        assert_eq!(runs, repeated(1));
        assert_ne!(runs, repeated(2));
        let median = |run: &Job| run.median_duration().seconds();
        assert!(runs.iter().all(|run| (40.0..250.0).contains(&median(run))));
        assert_ne!(median(&runs[0]), median(&runs[1]));
        // What is usual is the template's.
        let usual = Span::from_seconds(100);
        assert!(runs.iter().all(|run| run.usual_duration() == usual));
    }
}
