//! The choice of the distribution that fits best.

use crate::estimate::distribution::{Distribution, DistributionKind};
use crate::estimate::fit::max_likelihood;
use crate::estimate::sample::Sample;

/// With this many ended attempts the empirical distribution may be chosen …
const EMPIRICAL_ENDED_MIN: usize = 20;
/// … if at most this share of the sample still runs.
const EMPIRICAL_RUNNING_MAX: f64 = 0.1;

/// The distribution to fit to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistributionChoice {
    /// The distribution of this kind, however well it fits.
    Always(DistributionKind),
    /// The best-fitting distribution, by [`fit`].
    Best,
}

impl Default for DistributionChoice {
    /// The papers' distribution.
    fn default() -> Self {
        Self::Always(DistributionKind::Pareto)
    }
}

impl DistributionChoice {
    /// All choices.
    pub const ALL: [Self; 5] = [
        Self::Always(DistributionKind::Pareto),
        Self::Always(DistributionKind::LogNormal),
        Self::Always(DistributionKind::Weibull),
        Self::Always(DistributionKind::Empirical),
        Self::Best,
    ];

    /// The name in settings.
    pub fn label(self) -> &'static str {
        match self {
            Self::Always(kind) => kind.label(),
            Self::Best => "best",
        }
    }
}

/// One distribution, fitted to a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The distribution of its kind with the largest likelihood.
    pub distribution: Distribution,
    /// ln of that likelihood. Absent for the empirical distribution, because a density through the sample's own
    /// points can be arbitrarily large.
    pub ln_likelihood: Option<f64>,
}

impl Candidate {
    /// Akaike's criterion, 2·(parameters − ln likelihood); the least is best.
    ///
    /// The least time of the Pareto distribution counts as two parameters. Fitted, it raises twice the ln likelihood
    /// by a χ² with two degrees of freedom, where other parameters have one (`2nβ·ln(least/t_min)` is exponential
    /// with mean 2).
    pub fn aic(&self) -> Option<f64> {
        let parameters = match self.distribution.kind() {
            DistributionKind::Pareto => 3.0,
            DistributionKind::LogNormal | DistributionKind::Weibull => 2.0,
            DistributionKind::Empirical => return None,
        };
        Some(2.0 * (parameters - self.ln_likelihood?))
    }
}

/// All distributions, fitted to one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// In the order of [`DistributionKind::ALL`]; empty if no attempt has ended.
    pub candidates: Vec<Candidate>,
    /// The distribution to use.
    pub best: Option<Distribution>,
}

/// Fits every distribution and selects one.
///
/// The empirical distribution is selected if nearly all of at least 20 attempts have ended: it assumes nothing and is
/// exact about the observed times. Otherwise, as with most of a job's attempts still running, the distribution must
/// extend beyond all observed times, which requires a family. The one with the least [`Candidate::aic`] is selected.
/// Cross-validation is no alternative, because a held-out attempt faster than the rest is impossible under the Pareto
/// distribution.
pub fn fit(sample: &Sample) -> FitReport {
    let distributions = DistributionKind::ALL
        .into_iter()
        .filter_map(|kind| max_likelihood(kind, sample));
    let candidates: Vec<Candidate> = distributions
        .map(|distribution| Candidate {
            ln_likelihood: (distribution.kind() != DistributionKind::Empirical)
                .then(|| sample.ln_likelihood(&distribution)),
            distribution,
        })
        .collect();
    let ended = sample.ended_count();
    let running = (sample.len() - ended) as f64;
    let is_seen_whole =
        ended >= EMPIRICAL_ENDED_MIN && running <= EMPIRICAL_RUNNING_MAX * sample.len() as f64;
    let best = if is_seen_whole {
        let mut distributions = candidates.iter().map(|candidate| &candidate.distribution);
        distributions.find(|distribution| distribution.kind() == DistributionKind::Empirical)
    } else {
        let rated = candidates
            .iter()
            .filter_map(|c| Some((c.aic()?, &c.distribution)));
        let least = rated.min_by(|a, b| a.0.total_cmp(&b.0));
        least.map(|(_, distribution)| distribution)
    };
    FitReport {
        best: best.cloned(),
        candidates,
    }
}
