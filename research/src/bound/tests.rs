use std::sync::Arc;

use shed_core::time::Instant;

use super::*;
use shed_sim::random::{Purpose, Stream};
use shed_sim::trace::Stage;

/// (arrival, deadline from arrival, times of the tasks), all in milliseconds.
type Tiny = (i64, i64, Vec<i64>);

fn trace(jobs: &[Tiny]) -> Trace {
    let job = |(number, (arrival, limit, times)): (usize, &Tiny)| Job {
        id: Arc::from(format!("j{number}")),
        arrival: Instant(*arrival),
        deadline: Some(Span(*limit)),
        weight: 1.0,
        class: None,
        usual: None,
        tenant: None,
        expected: None,
        stages: vec![Stage {
            durations: times.iter().map(|&time| Span(time)).collect(),
            ..Stage::default()
        }],
    };
    Trace {
        jobs: jobs.iter().enumerate().map(job).collect(),
    }
}

fn conditions(slots: u32) -> Conditions {
    Conditions {
        slots,
        model: Model::Trace,
        launch_overhead: Delay::Fixed(Span(0)),
        draws: 1,
        seed: 0,
    }
}

/// The most jobs that any preemptive schedule in whole milliseconds has in time: every choice of
/// tasks in every millisecond.
fn exhaustive(jobs: &[Tiny], slots: usize) -> usize {
    let left: Vec<(usize, i64)> = jobs
        .iter()
        .enumerate()
        .flat_map(|(job, (.., times))| times.iter().map(move |&time| (job, time)))
        .collect();
    let mut seen = std::collections::BTreeMap::new();
    search(jobs, slots, 0, &left, &mut seen)
}

type Seen = std::collections::BTreeMap<(i64, Vec<(usize, i64)>), usize>;

fn search(jobs: &[Tiny], slots: usize, now: i64, left: &[(usize, i64)], seen: &mut Seen) -> usize {
    let end = |job: usize| jobs[job].0 + jobs[job].1;
    let open: Vec<usize> = (0..left.len())
        .filter(|&at| left[at].1 > 0 && jobs[left[at].0].0 <= now && now < end(left[at].0))
        .collect();
    let later = left
        .iter()
        .any(|&(job, time)| time > 0 && jobs[job].0 > now);
    if open.is_empty() && !later {
        let done = |job: &usize| left.iter().all(|&(other, time)| other != *job || time == 0);
        return (0..jobs.len()).filter(done).count();
    }
    let key = (now, left.to_vec());
    if let Some(&known) = seen.get(&key) {
        return known;
    }
    let mut best = 0;
    for choice in 0..1_u32 << open.len() {
        if choice.count_ones() as usize > slots {
            continue;
        }
        let mut after = left.to_vec();
        for (bit, &at) in open.iter().enumerate() {
            after[at].1 -= i64::from(choice >> bit & 1);
        }
        best = best.max(search(jobs, slots, now + 1, &after, seen));
    }
    seen.insert(key, best);
    best
}

fn random(stream: &mut Stream) -> Vec<Tiny> {
    let count = 1 + stream.index(4);
    let job = |_| {
        let tasks = 1 + stream.index(2);
        let times = (0..tasks).map(|_| 1 + stream.index(3) as i64).collect();
        (stream.index(4) as i64, 1 + stream.index(4) as i64, times)
    };
    let mut jobs: Vec<Tiny> = (0..count).map(job).collect();
    jobs.sort_by_key(|job| job.0);
    jobs
}

#[test]
fn no_schedule_of_a_tiny_cluster_exceeds_the_bound() {
    let (mut reached, cases) = (0, 400);
    for case in 0..cases {
        let mut stream = Stream::new(5, Purpose::Workload, [case, 0, 0]);
        let jobs = random(&mut stream);
        let slots = 1 + stream.index(2);
        let best = exhaustive(&jobs, slots);
        let bound = bound(&trace(&jobs), &conditions(slots as u32));
        assert!(bound.most <= bound.alone && bound.alone <= bound.jobs);
        assert!(
            best <= bound.most,
            "{jobs:?} on {slots}: {best} of {bound:?}"
        );
        reached += u64::from(best == bound.most);
    }
    assert!(
        reached > cases * 3 / 4,
        "only {reached} of {cases} are tight"
    );
}

#[test]
fn two_jobs_that_need_the_same_time_are_one() {
    let both = [(0, 10, vec![10]), (0, 10, vec![10])];
    assert_eq!(bound(&trace(&both), &conditions(1)).most, 1);
    assert_eq!(bound(&trace(&both), &conditions(2)).most, 2);
    // 15 of 20 fit, half of the second: no half counts.
    let longer = [(0, 10, vec![5]), (0, 10, vec![10])];
    assert_eq!(bound(&trace(&longer), &conditions(1)).most, 1);
}

#[test]
fn more_draws_only_raise_it_and_a_launch_only_lowers_it() {
    let times: Vec<i64> = (1..=10).map(|second| second * 1000).collect();
    let jobs: Vec<Tiny> = (0..20).map(|at| (at * 2000, 6000, times.clone())).collect();
    let trace = trace(&jobs);
    let resampled = |draws, launch| {
        let conditions = Conditions {
            model: Model::Resample,
            draws,
            launch_overhead: Delay::Fixed(Span(launch)),
            ..conditions(20)
        };
        bound(&trace, &conditions).most
    };
    assert_eq!(resampled(1, 0), 0, "tasks of 10 s can't be in time in 6 s");
    let counts: Vec<usize> = [2, 6, 60].map(|draws| resampled(draws, 0)).to_vec();
    assert!(counts.is_sorted() && counts[2] == 20, "{counts:?}");
    assert_eq!(resampled(60, 6000), 0);
}
