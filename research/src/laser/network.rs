//! Trains one network: hidden layers of parametric ReLU, a linear output, least absolute
//! deviations (\[L\] sections I and VI.B), by Adam.

use candle_core::{Device, Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use shed_papers::laser::{Feature, Input, Layer, Regressor};

use crate::laser::draw::Draw;
use crate::laser::error::TrainError;
use crate::laser::samples::Sample;

/// Initial value of slopes, as in He et al. ("Delving deep into rectifiers", 2015), \[L\]'s source.
const SLOPE: f64 = 0.25;
const BATCH: usize = 64;
/// Falls to 0 in a line over all steps.
const LEARNING_RATE: f64 = 3e-3;

/// How a network is trained. \[L\] gives the layers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Hidden layers.
    pub hidden: usize,
    /// Units of each.
    pub units: usize,
    /// Passes over the data.
    pub epochs: u32,
    /// First weights and the order of samples.
    pub seed: u64,
}

/// A layer that is trained.
struct Trained {
    weights: Var,
    bias: Var,
    /// None at the output.
    slopes: Option<Var>,
}

impl Trained {
    /// Weights after He et al. eq. 15, for a slope of [`SLOPE`]; biases are `bias`.
    fn new(
        draw: &mut Draw,
        [from, to]: [usize; 2],
        bias: f64,
        is_last: bool,
    ) -> Result<Self, TrainError> {
        let device = &Device::Cpu;
        let deviation = (2.0 / ((1.0 + SLOPE * SLOPE) * from.max(1) as f64)).sqrt();
        let weights: Vec<f64> = (0..from * to).map(|_| deviation * draw.normal()).collect();
        let slopes = || Var::from_vec(vec![SLOPE; to], to, device);
        Ok(Self {
            weights: Var::from_vec(weights, (to, from), device)?,
            bias: Var::from_vec(vec![bias; to], to, device)?,
            slopes: if is_last { None } else { Some(slopes()?) },
        })
    }

    fn forward(&self, input: &Tensor) -> candle_core::Result<Tensor> {
        let sum = input
            .matmul(&self.weights.t()?)?
            .broadcast_add(&self.bias)?;
        let Some(slopes) = &self.slopes else {
            return Ok(sum);
        };
        let below = sum.neg()?.relu()?.broadcast_mul(slopes)?;
        sum.relu()? - below
    }

    fn vars(&self) -> impl Iterator<Item = Var> + '_ {
        let all = [Some(&self.weights), Some(&self.bias), self.slopes.as_ref()];
        all.into_iter().flatten().cloned()
    }

    /// As plain numbers.
    fn layer(&self) -> candle_core::Result<Layer> {
        let slopes = self.slopes.as_ref().map(|slopes| slopes.to_vec1());
        Ok(Layer {
            weights: self.weights.to_vec2()?,
            bias: self.bias.to_vec1()?,
            slopes: slopes.transpose()?.unwrap_or_default(),
        })
    }
}

fn forward(layers: &[Trained], input: &Tensor) -> candle_core::Result<Tensor> {
    let first = Ok(input.clone());
    layers.iter().fold(first, |x, layer| layer.forward(&x?))
}

/// Mean and deviation of each feature.
fn inputs(features: &[Feature], samples: &[&Sample]) -> Vec<Input> {
    let count = samples.len().max(1) as f64;
    let input = |(at, &(name, logarithm)): (usize, &Feature)| {
        let raw = || {
            let values = samples
                .iter()
                .filter_map(move |sample| sample.features.get(at));
            values.map(|value| Input::raw(logarithm, *value))
        };
        let mean = raw().sum::<f64>() / count;
        let square = raw().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let deviation = square.sqrt();
        Input {
            name: name.to_owned(),
            logarithm,
            mean,
            // A constant feature has no information, whatever its divisor.
            deviation: if deviation > 1e-9 { deviation } else { 1.0 },
        }
    };
    features.iter().enumerate().map(input).collect()
}

/// Trains a network on the samples and calls `tick` after each pass over them. `what` names it in
/// errors.
pub fn train(
    what: &'static str,
    features: &[Feature],
    samples: &[&Sample],
    shape: Shape,
    tick: &mut dyn FnMut(),
) -> Result<Regressor, TrainError> {
    let count = samples.len().max(1);
    let mean = samples.iter().map(|sample| sample.time).sum::<f64>() / count as f64;
    let mut network = Regressor {
        inputs: inputs(features, samples),
        scale: if mean > 0.0 { mean } else { 1.0 },
        layers: Vec::new(),
    };
    let data: Vec<(Vec<f64>, f64)> = samples
        .iter()
        .map(|sample| {
            (
                network.normalised(&sample.features),
                sample.time / network.scale,
            )
        })
        .collect();
    let layers = first_layers(features.len(), shape)?;
    descend(&layers, &data, shape, tick)?;
    let trained: candle_core::Result<Vec<Layer>> = layers.iter().map(Trained::layer).collect();
    network.layers = trained?;
    let all = network.layers.iter();
    let mut numbers = all.flat_map(|layer| {
        layer
            .weights
            .iter()
            .flatten()
            .chain(&layer.bias)
            .chain(&layer.slopes)
    });
    if numbers.any(|number| !number.is_finite()) {
        return Err(TrainError::Diverged(what));
    }
    Ok(network)
}

fn first_layers(features: usize, shape: Shape) -> Result<Vec<Trained>, TrainError> {
    let mut draw = Draw::new(shape.seed, 1);
    let mut layers = Vec::with_capacity(shape.hidden + 1);
    let mut width = features;
    for _ in 0..shape.hidden {
        layers.push(Trained::new(&mut draw, [width, shape.units], 0.0, false)?);
        width = shape.units;
    }
    // It begins by saying the mean, which is 1.
    layers.push(Trained::new(&mut draw, [width, 1], 1.0, true)?);
    Ok(layers)
}

/// Steps of Adam on batches in a random order.
fn descend(
    layers: &[Trained],
    data: &[(Vec<f64>, f64)],
    shape: Shape,
    tick: &mut dyn FnMut(),
) -> Result<(), TrainError> {
    let vars = layers.iter().flat_map(Trained::vars).collect();
    let mut adam = AdamW::new(
        vars,
        ParamsAdamW {
            lr: LEARNING_RATE,
            weight_decay: 0.0,
            ..ParamsAdamW::default()
        },
    )?;
    let mut draw = Draw::new(shape.seed, 2);
    let mut order: Vec<usize> = (0..data.len()).collect();
    for epoch in 0..shape.epochs {
        let left = 1.0 - f64::from(epoch) / f64::from(shape.epochs.max(1));
        adam.set_learning_rate(LEARNING_RATE * left);
        draw.shuffle(&mut order);
        for batch in order.chunks(BATCH) {
            let rows = batch.iter().filter_map(|at| data.get(*at));
            let [input, target] = tensors(rows)?;
            let loss = (forward(layers, &input)? - target)?.abs()?.mean_all()?;
            adam.backward_step(&loss)?;
        }
        tick();
    }
    Ok(())
}

fn tensors<'a>(rows: impl Iterator<Item = &'a (Vec<f64>, f64)>) -> Result<[Tensor; 2], TrainError> {
    let (mut input, mut target) = (Vec::new(), Vec::new());
    for (features, time) in rows {
        input.extend_from_slice(features);
        target.push(*time);
    }
    let count = target.len();
    let width = input.len() / count.max(1);
    Ok([
        Tensor::from_vec(input, (count, width), &Device::Cpu)?,
        Tensor::from_vec(target, (count, 1), &Device::Cpu)?,
    ])
}
