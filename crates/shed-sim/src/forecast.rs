//! A forecast from a PoCD: what became of earlier jobs of which about as much was said. A PoCD counts
//! what lives and what the plan launches; what later passes will do for a job only experience
//! tells.

use shed_core::time::Instant;

use crate::calibration::Prediction;

/// A PoCD itself counts as so many jobs.
const PRIOR: f64 = 1.0;

/// With fewer jobs there is no forecast.
const JOBS_MIN: usize = 30;

/// The standard deviation of the kernel: jobs of which that much more or less was said count for
/// 0.6 of one.
const WIDTH: f64 = 0.05;

/// A prediction with its times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dated {
    /// What was said and what came.
    pub prediction: Prediction,
    /// When it was said.
    pub said: Instant,
    /// When it was known whether the job was in time.
    pub known: Instant,
}

/// Earlier jobs, asked at one moment of their time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecast {
    seen: Vec<Prediction>,
}

impl Forecast {
    /// P(the job is in time) of which that PoCD was said, in [0, 1]; absent while too few jobs have
    /// been seen.
    #[must_use]
    pub fn of(&self, pocd: f64) -> Option<f64> {
        if self.seen.len() < JOBS_MIN {
            return None;
        }
        let (mut met, mut count) = (PRIOR * pocd, PRIOR);
        for earlier in &self.seen {
            let z = (earlier.pocd - pocd) / WIDTH;
            let weight = libm::exp(-z * z / 2.0);
            count += weight;
            met += weight * f64::from(u8::from(earlier.met));
        }
        Some(met / count)
    }

    /// Forecasts for a run that follows the runs before: each by the jobs whose fate was known by
    /// then, where those are enough.
    pub fn follow(&mut self, mut run: Vec<Dated>) -> Vec<Prediction> {
        let mut known = run.clone();
        known.sort_by_key(|dated| dated.known);
        run.sort_by_key(|dated| dated.said);
        let mut known = known.into_iter().peekable();
        let mut forecasts = Vec::with_capacity(run.len());
        for dated in run {
            while let Some(ended) = known.next_if(|ended| ended.known <= dated.said) {
                self.seen.push(ended.prediction);
            }
            let met = dated.prediction.met;
            let pocd = self.of(dated.prediction.pocd);
            forecasts.extend(pocd.map(|pocd| Prediction { pocd, met }));
        }
        self.seen.extend(known.map(|ended| ended.prediction));
        forecasts
    }
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
        assert_eq!(forecast.follow(early), []);
        // The thirtieth is known when the second is said, and not before.
        let run = vec![dated(0.5, true, 0, 10), dated(0.5, false, 10, 20)];
        let pocds: Vec<f64> = forecast.follow(run).iter().map(|p| p.pocd).collect();
        assert_eq!(pocds, [30.5 / 31.0]);
        // A next run knows both.
        let next = forecast.follow(vec![dated(0.5, true, 0, 10)]);
        assert!((next[0].pocd - 30.5 / 32.0).abs() < 1e-12);
    }

    #[test]
    fn what_was_said_too_dark_is_put_right_where_it_was_said() {
        let mut forecast = Forecast::default();
        let jobs = (0..1000).map(|n| dated(0.2, n % 10 != 0, n, n));
        forecast.follow(jobs.collect());
        assert!((forecast.of(0.2).unwrap() - 0.9).abs() < 0.01);
        assert_eq!(forecast.of(0.8), Some(0.8));
    }
}
