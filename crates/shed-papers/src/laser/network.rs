//! A trained network as plain numbers, and its forward pass. Training is another crate's.

use serde::{Deserialize, Serialize};

/// A dense layer: y = f(W·x + b), with f the parametric ReLU of its units (\[L\] eq. 1), or the
/// identity if it has no slopes, as the output layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// W, a row per unit.
    pub weights: Vec<Vec<f64>>,
    /// b, a number per unit.
    pub bias: Vec<f64>,
    /// The slope of each unit below 0; empty: linear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes: Vec<f64>,
}

impl Layer {
    fn forward(&self, input: &[f64]) -> Vec<f64> {
        let slopes = self.slopes.iter().copied().chain(std::iter::repeat(1.0));
        let units = self.weights.iter().zip(&self.bias).zip(slopes);
        let output = units.map(|((row, bias), slope)| {
            let sum: f64 = row.iter().zip(input).map(|(w, x)| w * x).sum();
            let sum = sum + bias;
            if sum < 0.0 { slope * sum } else { sum }
        });
        output.collect()
    }
}

/// Transformation of a feature into an input: (x − mean)/deviation, with x = ln(1 + feature) if the
/// flag is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The feature.
    pub name: String,
    /// Whether its logarithm is taken.
    pub logarithm: bool,
    /// Mean over the training data.
    pub mean: f64,
    /// Standard deviation over the training data; above 0.
    pub deviation: f64,
}

impl Input {
    /// The feature before it is centered.
    pub fn raw(logarithm: bool, feature: f64) -> f64 {
        if logarithm {
            libm::log1p(feature.max(0.0))
        } else {
            feature
        }
    }

    fn of(&self, feature: f64) -> f64 {
        (Self::raw(self.logarithm, feature) - self.mean) / self.deviation
    }
}

/// A network that predicts one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regressor {
    /// Its inputs, in order.
    pub inputs: Vec<Input>,
    /// Seconds for an output of 1.
    pub scale: f64,
    /// Hidden layers, then one of a single linear unit.
    pub layers: Vec<Layer>,
}

impl Regressor {
    /// The inputs that features become.
    pub fn normalised(&self, features: &[f64]) -> Vec<f64> {
        let inputs = self.inputs.iter().zip(features);
        inputs.map(|(input, feature)| input.of(*feature)).collect()
    }

    /// The predicted time in seconds, at least 0; infinite where the network gives no number.
    pub fn predict(&self, features: &[f64]) -> f64 {
        let first = self.normalised(features);
        let last = self.layers.iter().fold(first, |x, layer| layer.forward(&x));
        let time = last.first().map_or(f64::NAN, |y| y * self.scale);
        if time.is_nan() {
            f64::INFINITY
        } else {
            time.max(0.0)
        }
    }

    /// The fault of its numbers: the field and the reason.
    pub(crate) fn fault(&self) -> Option<(String, String)> {
        let is_bad = |number: &f64| !number.is_finite();
        for (at, input) in self.inputs.iter().enumerate() {
            let is_sound = input.mean.is_finite() && input.deviation.is_finite();
            if !is_sound || input.deviation <= 0.0 {
                let what = "mean and deviation must be numbers, and the deviation above 0";
                return Some((format!("inputs[{at}]"), what.into()));
            }
        }
        if is_bad(&self.scale) || self.scale <= 0.0 {
            return Some(("scale".into(), "must be a number above 0".into()));
        }
        let mut width = self.inputs.len();
        for (at, layer) in self.layers.iter().enumerate() {
            let units = layer.weights.len();
            let fits = layer.weights.iter().all(|row| row.len() == width);
            let slopes = [0, units].contains(&layer.slopes.len());
            if !fits || layer.bias.len() != units || !slopes {
                let what = format!("each unit needs {width} weights, a bias and a slope or none");
                return Some((format!("layers[{at}]"), what));
            }
            let mut numbers = layer.weights.iter().flatten();
            let mut rest = layer.bias.iter().chain(&layer.slopes);
            if numbers.any(is_bad) || rest.any(is_bad) {
                return Some((format!("layers[{at}]"), "a number is not finite".into()));
            }
            width = units;
        }
        let last = self.layers.last();
        let is_output = last.is_some_and(|layer| layer.weights.len() == 1);
        (!is_output).then(|| {
            let what = "the last must have one unit: the time";
            ("layers".to_owned(), what.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forward_pass_is_equation_1_worked_by_hand() {
        let input = |name: &str, logarithm| Input {
            name: name.into(),
            logarithm,
            mean: 1.0,
            deviation: 2.0,
        };
        let network = Regressor {
            inputs: vec![input("a", false), input("b", true)],
            scale: 10.0,
            layers: vec![
                Layer {
                    weights: vec![vec![1.0, 2.0], vec![-1.0, 0.5]],
                    bias: vec![0.5, -1.0],
                    slopes: vec![0.25, 0.1],
                },
                Layer {
                    weights: vec![vec![2.0, 3.0]],
                    bias: vec![0.125],
                    slopes: vec![],
                },
            ],
        };
        // Inputs 1 and (ln(1 + 0) − 1)/2 = −0.5: units 1 − 1 + 0.5 = 0.5 and −1 − 0.25 − 1 = −2.25.
        let expected = 10.0 * (2.0 * 0.5 + 3.0 * 0.1 * -2.25 + 0.125);
        let got = network.predict(&[3.0, 0.0]);
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        assert_eq!(network.fault(), None);
    }

    #[test]
    fn a_prediction_is_never_below_0_and_never_nan() {
        let layer = |weight, bias| Layer {
            weights: vec![vec![weight]],
            bias: vec![bias],
            slopes: vec![],
        };
        let network = |layers| Regressor {
            inputs: vec![Input {
                name: "a".into(),
                logarithm: false,
                mean: 0.0,
                deviation: 1.0,
            }],
            scale: 1.0,
            layers,
        };
        assert_eq!(network(vec![layer(-1.0, 0.0)]).predict(&[5.0]), 0.0);
        let huge = network(vec![layer(1e308, 0.0), layer(0.0, 0.0)]);
        assert_eq!(huge.fault(), None);
        assert_eq!(huge.predict(&[1e10]), f64::INFINITY);
        let cases = [
            (network(vec![]), "layers"),
            (network(vec![layer(f64::NAN, 0.0)]), "layers[0]"),
            (
                network(vec![Layer {
                    bias: vec![],
                    ..layer(1.0, 0.0)
                }]),
                "layers[0]",
            ),
        ];
        for (network, field) in cases {
            assert_eq!(
                network.fault().map(|(field, _)| field).as_deref(),
                Some(field)
            );
        }
    }
}
