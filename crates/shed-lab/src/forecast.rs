//! Forecasts for runs that follow each other: each by the jobs whose fate was known by then.

use shed_core::estimate::forecast::Forecast;
use shed_core::time::Instant;

use crate::calibration::Prediction;

/// A prediction with its times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dated {
    /// Prediction and outcome.
    pub prediction: Prediction,
    /// When it was said.
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
        forecasts.extend(pocd.map(|pocd| Prediction { pocd, met }));
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
        let early = (0..29).map(|n| dated(0.5, true, n, n)).collect();
        assert_eq!(follow(&mut forecast, early), []);
        // The thirtieth is known when the second is said, and not before.
        let run = vec![dated(0.5, true, 0, 10), dated(0.5, false, 10, 20)];
        let [second] = follow(&mut forecast, run)[..] else {
            panic!("one forecast")
        };
        // Each counts 0.999 times as much after the next.
        let thirty = (1.0 - 0.999_f64.powi(30)) / 0.001;
        assert!((second.pocd - (thirty + 0.5) / (thirty + 1.0)).abs() < 1e-12);
        // A next run knows both.
        let next = follow(&mut forecast, vec![dated(0.5, true, 0, 10)]);
        let met = 0.999 * thirty;
        assert!((next[0].pocd - (met + 0.5) / (met + 2.0)).abs() < 1e-12);
    }
}
