use std::collections::BTreeSet;

use candle_core::{DType, Device, Tensor};
use shed_core::fixtures::{at, attempt, job, world};
use shed_core::ids::{AttemptNumber, JobKey, TaskIndex};
use shed_core::plan::Outcome;
use shed_core::snapshot::AttemptKind;
use shed_papers::Laser;
use shed_papers::laser::{JOB_FEATURES, Regressor};
use shed_record::schema::Ended;

use crate::laser::error::TrainError;
use crate::laser::losses::{compare, ticks};
use crate::laser::network::{Shape, train};
use crate::laser::samples::{Collector, Extra, Sample, Samples};
use crate::laser::training::{HIDDEN, JOBS_MIN, Plan, check, divide};

/// Jobs whose times depend on their features: 100 s, and 50 s less for each extra attempt.
fn samples(jobs: usize) -> Samples {
    let features = |number: usize, count: usize| -> Vec<f64> {
        (0..count)
            .map(|at| ((number * 7 + at * 3) % 11) as f64 / 10.0)
            .collect()
    };
    let sample = |number: usize| {
        let mut features = features(number, JOB_FEATURES.len());
        let extra = (number % 3) as f64;
        features[JOB_FEATURES.len() - 1] = extra;
        Sample {
            job: number,
            features,
            time: 200.0 - 50.0 * extra,
        }
    };
    let task = |number: usize| Sample {
        job: number,
        features: features(number, 7),
        time: 100.0 + (number % 11) as f64,
    };
    Samples {
        jobs,
        task: (0..jobs).map(task).collect(),
        job: (0..jobs).map(sample).collect(),
        machine: (0..jobs).map(sample).collect(),
    }
}

fn plan(epochs: u32, seed: u64) -> Plan {
    Plan {
        source: "test".into(),
        units: 8,
        epochs,
        seed,
    }
}

#[test]
fn the_same_seed_gives_the_same_networks_bit_by_bit() {
    let samples = samples(120);
    let train = |seed| compare(&samples, &plan(2, seed), 3, &mut || {}).unwrap();
    let (one, again, other) = (train(1), train(1), train(2));
    assert_eq!(one, again, "the losses too");
    let (one, again, other) = (one.0, again.0, other.0);
    assert_ne!(one.task, other.task);
    let hidden = [&one.task, &one.job, &one.machine].map(|network| network.layers.len() - 1);
    assert_eq!(hidden, HIDDEN);
    one.check().unwrap();
    let text = shed_papers::laser::file::networks_to_text(&one).unwrap();
    assert_eq!(
        text,
        shed_papers::laser::file::networks_to_text(&again).unwrap()
    );
}

#[test]
fn a_network_learns_what_extra_attempts_save() {
    let samples = samples(150);
    let divided = divide(&samples.job, samples.jobs, 1);
    let shape = Shape {
        hidden: 1,
        units: 8,
        epochs: 300,
        seed: 1,
    };
    let mut ticks = 0;
    let network = train("job", &JOB_FEATURES, &divided.train, shape, &mut || {
        ticks += 1
    })
    .unwrap();
    assert_eq!(ticks, 300);
    let loss = divided
        .test
        .iter()
        .map(|s| (network.predict(&s.features) - s.time).abs());
    let mean = loss.sum::<f64>() / divided.test.len() as f64;
    // Always saying the median would miss by about 33 s.
    assert!(mean < 10.0, "{mean}");
}

/// The forward pass in candle, from the plain numbers.
fn by_candle(network: &Regressor, features: &[f64]) -> f64 {
    let device = &Device::Cpu;
    let input = network.normalised(features);
    let width = input.len();
    let mut x = Tensor::from_vec(input, (1, width), device).unwrap();
    for layer in &network.layers {
        let (to, from) = (layer.weights.len(), layer.weights[0].len());
        let weights: Vec<f64> = layer.weights.concat();
        let weights = Tensor::from_vec(weights, (to, from), device).unwrap();
        let bias = Tensor::from_vec(layer.bias.clone(), to, device).unwrap();
        x = x
            .matmul(&weights.t().unwrap())
            .unwrap()
            .broadcast_add(&bias)
            .unwrap();
        if !layer.slopes.is_empty() {
            let slopes = Tensor::from_vec(layer.slopes.clone(), to, device).unwrap();
            x = candle_nn::PReLU::new(slopes, false).forward_of(&x);
        }
    }
    assert_eq!(x.dtype(), DType::F64);
    let y = x.flatten_all().unwrap().to_vec1::<f64>().unwrap();
    y[0] * network.scale
}

trait ForwardOf {
    fn forward_of(&self, x: &Tensor) -> Tensor;
}

impl ForwardOf for candle_nn::PReLU {
    fn forward_of(&self, x: &Tensor) -> Tensor {
        candle_nn::Module::forward(self, x).unwrap()
    }
}

#[test]
fn the_core_predicts_what_candle_predicts() {
    let samples = samples(110);
    let (trained, _) = compare(&samples, &plan(3, 4), 0, &mut || {}).unwrap();
    let mut compared = 0;
    for (network, samples) in [
        (&trained.task, &samples.task),
        (&trained.job, &samples.job),
        (&trained.machine, &samples.machine),
    ] {
        for sample in samples {
            let (core, candle) = (
                network.predict(&sample.features),
                by_candle(network, &sample.features),
            );
            assert!(
                (core - candle.max(0.0)).abs() <= 1e-5 * candle.abs().max(1.0),
                "{core} {candle}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 330);
}

#[test]
fn tables_have_every_depth_and_a_forest_that_has_learned() {
    let samples = samples(120);
    let mut ticked = 0;
    let plan = plan(1, 1);
    let (_, losses) = compare(&samples, &plan, 12, &mut || ticked += 1).unwrap();
    assert_eq!([ticked, ticks(&plan, 12)], [9 + 3 * 12; 2]);
    let [task, job, machine] = losses;
    assert_eq!(
        [task.what, job.what, machine.what],
        ["task", "job", "machine"]
    );
    assert_eq!((job.trained, job.tested), (96, 24));
    assert!(
        job.layers
            .iter()
            .all(|loss| loss.mean > 0.0 && loss.deviation > 0.0)
    );
    assert!(job.forest.unwrap().mean < 0.2 * job.median.mean, "{job:?}");
    let (_, without) = compare(&samples, &plan, 0, &mut || {}).unwrap();
    assert_eq!(without[1].forest, None);
    assert_eq!(without[1].layers, job.layers);
}

#[test]
fn jobs_are_trained_on_or_tested_and_never_divided() {
    let mut samples = samples(100);
    samples.task.extend(samples.task.clone());
    let divided = divide(&samples.task, 100, 9);
    let jobs = |samples: &[&Sample]| samples.iter().map(|s| s.job).collect::<BTreeSet<usize>>();
    let (train, test) = (jobs(&divided.train), jobs(&divided.test));
    assert_eq!((train.len(), test.len()), (80, 20));
    assert!(train.is_disjoint(&test));
}

#[test]
fn too_few_jobs_or_tasks_are_refused_by_field_and_number() {
    let few = samples(JOBS_MIN - 1);
    let message = check(&few).unwrap_err().to_string();
    assert!(message.starts_with("field `jobs`: 99 jobs"), "{message}");
    assert!(message.contains("at least 100 are needed"), "{message}");
    let mut no_tasks = samples(JOBS_MIN);
    no_tasks.task.truncate(3);
    let message = check(&no_tasks).unwrap_err().to_string();
    assert!(message.starts_with("field `tasks`: 3 tasks"), "{message}");
    let refused = compare(&few, &plan(1, 1), 0, &mut || {}).unwrap_err();
    assert!(matches!(refused, TrainError::TooFew { .. }), "{refused}");
}

fn ended(task: u32, number: u32, kind: AttemptKind, launched: f64, finished: Option<f64>) -> Ended {
    Ended {
        job: JobKey::from("a"),
        task: TaskIndex(task),
        attempt: AttemptNumber(number),
        kind,
        outcome: None,
        launched: at(launched),
        started: Some(at(launched + 1.0)),
        finished: finished.map(at),
        start_progress: 0.0,
        reported: None,
    }
}

/// At 50 s, with τ_est at 48 s of 100: task 0 is done, task 1 runs well, task 2 slowly.
fn seen(extra: Extra) -> Collector {
    let running = |progress| attempt(0).on(0).progress(progress, 49.0);
    let job = job("a").tasks(3).deadline_in(100.0).done(0..1);
    let job = job.task(1, [running(0.5)]).task(2, [running(0.1)]);
    let mut collector = Collector::new(Laser::default(), extra, 1);
    let cluster = |now| world(now, 2, 4000).job(job.clone()).build();
    collector.pass(&cluster(40.0));
    collector.ended(ended(0, 0, AttemptKind::Original, 0.0, Some(30.0)));
    collector.pass(&cluster(50.0));
    // A later fact was not known at τ_est.
    collector.pass(&cluster(60.0));
    collector.ended(ended(1, 0, AttemptKind::Original, 0.0, Some(91.0)));
    // Killed for clones after 0.2 of its task in 64 s of processing.
    let mut original = ended(2, 0, AttemptKind::Original, 0.0, Some(70.0));
    original.outcome = Some(Outcome::Superseded);
    original.reported = Some((0.2, at(65.0)));
    collector.ended(original);
    let mut loser = ended(2, 1, AttemptKind::Clone, 52.0, Some(95.0));
    loser.outcome = Some(Outcome::Superseded);
    collector.ended(loser);
    collector.ended(ended(2, 2, AttemptKind::Clone, 52.0, Some(94.0)));
    collector
}

#[test]
fn samples_are_what_was_known_at_tau_est_and_what_came_of_it() {
    let samples = seen(Extra::Seen).finish();
    assert_eq!(
        (samples.jobs, samples.job.len(), samples.task.len()),
        (1, 1, 2)
    );
    let times: Vec<f64> = samples.task.iter().map(|sample| sample.time).collect();
    // The killed original would have taken 64/0.2 s after its start.
    assert_eq!(times, [91.0, 1.0 + 320.0]);
    assert_eq!(samples.job[0].time, 94.0);
    let machine = 30.0 + 91.0 + 70.0 + (95.0 - 52.0) + (94.0 - 52.0);
    assert_eq!(samples.machine[0].time, machine);
    let feature = |name: &str| {
        let at = JOB_FEATURES.iter().position(|(other, _)| *other == name);
        samples.job[0].features[at.unwrap()]
    };
    assert_eq!(
        feature("extra"),
        1.0,
        "two clones, of which one replaces the original"
    );
    assert_eq!(feature("tau_est"), 50.0);
    assert_eq!(feature("progress_least"), 0.1);
    assert!((feature("job_progress") - 1.6 / 3.0).abs() < 1e-12);
    assert_eq!(
        [feature("tau_kill"), feature("deadline"), feature("tasks")],
        [80.0, 100.0, 3.0]
    );
    let task = &samples.task[1].features;
    assert!((0.0..=1.0).contains(&task[0]), "{task:?}");
    assert_eq!(task[1..], [2.0, 0.1, 49.0, 1.0, 50.0, 50.0]);
}

#[test]
fn drawn_extra_attempts_count_even_without_capacity() {
    let samples = seen(Extra::Drawn(8)).finish();
    let extra = samples.job[0].features[JOB_FEATURES.len() - 1];
    let view = shed_papers::laser::LaserJob {
        key: JobKey::from("a"),
        now: 0.0,
        deadline: 0.0,
        tau_kill: 0.0,
        completions: 0,
        done: 0,
        tasks: Vec::new(),
    };
    assert_eq!(extra, f64::from(Laser::default().drawn_extra(8, &view)));
}

#[test]
fn a_job_that_was_not_seen_to_its_end_is_no_sample() {
    let mut collector = seen(Extra::Seen);
    let other = job("b")
        .tasks(1)
        .deadline_in(100.0)
        .task(0, [attempt(0).on(0)]);
    collector.pass(&world(70.0, 2, 4000).job(other).build());
    let mut samples = collector.finish();
    assert_eq!((samples.jobs, samples.job.len()), (2, 1));
    let more = seen(Extra::Seen).finish();
    samples.add(more);
    assert_eq!(samples.jobs, 3);
    assert_eq!(samples.job[1].job, 2);
}

#[test]
fn zeros_of_a_task_that_has_not_begun_are_drawn() {
    let silent = job("a")
        .tasks(1)
        .deadline_in(100.0)
        .task(0, [attempt(0).on(0)]);
    let features = |seed| {
        let mut collector = Collector::new(Laser::default(), Extra::Seen, seed);
        collector.pass(&world(50.0, 1, 4000).job(silent.clone()).build());
        collector.ended(ended(0, 0, AttemptKind::Original, 0.0, Some(91.0)));
        collector.finish().task.remove(0).features
    };
    let [one, again, other] = [features(1), features(1), features(2)];
    assert_eq!(one, again);
    for at in [2, 3] {
        assert!(one[at] > 0.0 && one[at] < 1.0, "{one:?}");
        assert_ne!(one[at], other[at]);
    }
    assert_ne!(one[2], one[3]);
}
