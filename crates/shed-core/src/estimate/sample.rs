//! Observed attempt durations: those of ended attempts, and lower bounds for attempts that still run, which take
//! longer than their age.

use crate::estimate::distribution::AttemptDistribution;

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// The attempt's whole time, or its age.
    pub time: f64,
    /// Whether the attempt ended; otherwise it is censored from the right at `time`.
    pub ended: bool,
}

/// A sample of attempt times in one unit, ascending; at equal times ended ones first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    observations: Vec<Observation>,
}

impl Sample {
    /// From the times of `ended` attempts and the ages of `running` ones, without those that are not positive and
    /// finite.
    pub fn new(ended: &[f64], running: &[f64]) -> Self {
        let of = |ended: bool| move |&time: &f64| Observation { time, ended };
        let ended = ended.iter().map(of(true));
        let running = running.iter().map(of(false));
        Self::from_observations(ended.chain(running))
    }

    /// From any order, without times that are not positive and finite.
    pub fn from_observations(observations: impl IntoIterator<Item = Observation>) -> Self {
        let usable = |seen: &Observation| seen.time > 0.0 && seen.time.is_finite();
        let mut observations: Vec<_> = observations.into_iter().filter(usable).collect();
        observations
            .sort_by(|a, b| (a.time.total_cmp(&b.time)).then_with(|| b.ended.cmp(&a.ended)));
        Self { observations }
    }

    /// The same with `count` further ended attempts: the quantiles of the prior at (i − ½)/count. They pull a fit
    /// towards the prior as much as `count` observed attempts would, in any family.
    pub fn with_pseudo_attempts(
        &self,
        distribution: &impl AttemptDistribution,
        count: u32,
    ) -> Self {
        let tail = |i: u32| (f64::from(i) + 0.5) / f64::from(count);
        let pseudo = (0..count).map(|i| Observation {
            time: distribution.quantile(libm::log(tail(i))),
            ended: true,
        });
        Self::from_observations(self.observations.iter().copied().chain(pseudo))
    }

    /// All observations, ascending.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// The times of ended attempts, ascending.
    pub fn ended(&self) -> impl DoubleEndedIterator<Item = f64> + '_ {
        let ended = self.observations.iter().filter(|seen| seen.ended);
        ended.map(|seen| seen.time)
    }

    /// The ages of running attempts, ascending.
    pub fn running(&self) -> impl Iterator<Item = f64> + '_ {
        let running = self.observations.iter().filter(|seen| !seen.ended);
        running.map(|seen| seen.time)
    }

    /// The number of observations.
    pub fn len(&self) -> usize {
        self.observations.len()
    }

    /// Whether the sample is empty.
    pub fn is_empty(&self) -> bool {
        self.observations.is_empty()
    }

    /// The number of ended attempts.
    pub fn ended_count(&self) -> usize {
        self.ended().count()
    }

    /// ln of the likelihood of a distribution: densities of the ended attempts, survivals of the running ones. −∞ if
    /// an observation is impossible under the distribution.
    pub fn ln_likelihood(&self, distribution: &impl AttemptDistribution) -> f64 {
        let terms = self.observations.iter().map(|seen| {
            if seen.ended {
                distribution.ln_density(seen.time)
            } else {
                distribution.ln_survival(seen.time)
            }
        });
        terms.sum()
    }
}

/// The middle one of these values, the higher one of two.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (_, median, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_in_order_and_free_of_nonsense() {
        let sample = Sample::new(&[3.0, f64::NAN, 1.0, -1.0], &[3.0, 0.0, 2.0, f64::INFINITY]);
        let seen: Vec<_> = sample
            .observations()
            .iter()
            .map(|s| (s.time, s.ended))
            .collect();
        assert_eq!(seen, [(1.0, true), (2.0, false), (3.0, true), (3.0, false)]);
        assert_eq!((sample.len(), sample.ended_count()), (4, 2));
        assert!(!sample.is_empty() && Sample::new(&[f64::NAN], &[]).is_empty());
    }
}
