//! Calibrated PoCD for consecutive runs: each prediction uses the jobs with a known outcome at its
//! time.

use shed_core::estimate::forecast::Forecast;
use shed_core::time::Instant;

use crate::calibration::Prediction;

/// A prediction with its times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dated {
    /// Prediction and outcome.
    pub prediction: Prediction,
    /// When the prediction was made.
    pub said: Instant,
    /// When it was known whether the job was in time.
    pub known: Instant,
}

/// Predictions for a run that follows the runs in `seen`. Afterwards `seen` contains the outcomes
/// of this run, too.
pub fn follow(seen: &mut Forecast, mut run: Vec<Dated>) -> Vec<Prediction> {
    let mut known = run.clone();
    known.sort_by_key(|dated| dated.known);
    run.sort_by_key(|dated| dated.said);
    let mut known = known.into_iter().peekable();
    let learn = |seen: &mut Forecast, ended: Dated| {
        seen.learn(ended.prediction.pocd, ended.prediction.met);
    };
    let mut forecasts = Vec::with_capacity(run.len());
    for dated in run {
        while let Some(ended) = known.next_if(|ended| ended.known <= dated.said) {
            learn(seen, ended);
        }
        let met = dated.prediction.met;
        let pocd = seen.of(dated.prediction.pocd);
        forecasts.push(Prediction { pocd, met });
    }
    for ended in known {
        learn(seen, ended);
    }
    forecasts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dated(pocd: f64, met: bool, said: i64, known: i64) -> Dated {
        Dated {
            prediction: Prediction { pocd, met },
            said: Instant(said),
            known: Instant(known),
        }
    }

    #[test]
    fn nothing_is_known_before_it_happened() {
        let mut forecast = Forecast::default();
        // The outcome of the first one is known when the second prediction is made, and not before.
        let run = vec![dated(0.5, true, 0, 10), dated(0.5, false, 10, 20)];
        let [first, second] = follow(&mut forecast, run)[..] else {
            panic!("two forecasts")
        };
        // The PoCD itself counts as one job.
        assert!((first.pocd - 0.5).abs() < 1e-12);
        assert!((second.pocd - (1.0 + 0.5) / (1.0 + 1.0)).abs() < 1e-12);
        // A later run uses both. Each counts 0.999 times as much after the next.
        let next = follow(&mut forecast, vec![dated(0.5, true, 0, 10)]);
        assert!((next[0].pocd - (0.999 + 0.5) / (1.999 + 1.0)).abs() < 1e-12);
    }
}
