//! LASER's networks in a few words.

use crate::laser::{
    Feature, Input, JOB_FEATURES, Layer, Networks, Regressor, TASK_FEATURES, Training, VERSION,
};

/// A network without hidden layers: `bias` plus features times their `weights`, in seconds.
pub fn line(features: &[Feature], bias: f64, weights: &[(&str, f64)]) -> Regressor {
    let weight = |name: &str| {
        let mut named = weights.iter().filter(|(other, _)| *other == name);
        named.next().map_or(0.0, |(_, weight)| *weight)
    };
    let input = |(name, _): &Feature| Input {
        name: (*name).to_owned(),
        logarithm: false,
        mean: 0.0,
        deviation: 1.0,
    };
    Regressor {
        inputs: features.iter().map(input).collect(),
        scale: 1.0,
        layers: vec![Layer {
            weights: vec![features.iter().map(|(name, _)| weight(name)).collect()],
            bias: vec![bias],
            slopes: Vec::new(),
        }],
    }
}

/// Networks of these three.
pub fn networks_of(seed: u64, [task, job, machine]: [Regressor; 3]) -> Networks {
    Networks {
        version: VERSION,
        seed,
        training: Training {
            source: "fixture".to_owned(),
            jobs: 0,
            job_samples: 0,
            task_samples: 0,
            epochs: 0,
            shed: "0".to_owned(),
        },
        task,
        job,
        machine,
    }
}

/// Networks of one hidden layer, with random weights.
pub fn networks(seed: u64) -> Networks {
    let hidden = |features: &[Feature], at: f64| {
        let mut network = line(features, 0.25, &[]);
        network.layers = vec![
            Layer {
                weights: [1.0, -1.0]
                    .map(|sign| {
                        (0..features.len())
                            .map(|x| sign / (x as f64 + at))
                            .collect()
                    })
                    .into(),
                bias: vec![0.1, -0.3],
                slopes: vec![0.25, 0.75],
            },
            Layer {
                weights: vec![vec![1.0 / 3.0, at]],
                bias: vec![0.7],
                slopes: Vec::new(),
            },
        ];
        network
    };
    let of = [
        hidden(&TASK_FEATURES, 3.0),
        hidden(&JOB_FEATURES, 7.0),
        hidden(&JOB_FEATURES, 9.0),
    ];
    networks_of(seed, of)
}
