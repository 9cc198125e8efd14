//! Which law fits.

use crate::estimate::fit::max_likelihood;
use crate::estimate::law::{Law, LawKind};
use crate::estimate::sample::Sample;

/// From so many ended attempts on, the empirical law may be chosen …
const EMPIRICAL_ENDED_MIN: usize = 20;
/// … if so small a share of the sample still runs.
const EMPIRICAL_RUNNING_MAX: f64 = 0.1;

/// The share of the ended attempts that counts as the far tail in a report.
const TAIL_SHARE: f64 = 0.05;

/// Which law is read of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LawChoice {
    /// That of this kind, whatever fits.
    Always(LawKind),
    /// That which fits best, by [`fit`].
    Best,
}

impl Default for LawChoice {
    /// The papers' law.
    fn default() -> Self {
        Self::Always(LawKind::Pareto)
    }
}

impl LawChoice {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Always(LawKind::Pareto),
        Self::Always(LawKind::LogNormal),
        Self::Always(LawKind::Weibull),
        Self::Always(LawKind::Empirical),
        Self::Best,
    ];

    /// The name in settings.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Always(kind) => kind.label(),
            Self::Best => "best",
        }
    }
}

/// One law, fitted to a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The law of its kind of the largest likelihood.
    pub law: Law,
    /// ln of that likelihood. Absent for the empirical law: a density through the sample's own
    /// points can be as large as one likes.
    pub ln_likelihood: Option<f64>,
}

impl Candidate {
    /// Akaike's criterion, 2·(parameters − ln likelihood); the least is best.
    ///
    /// The least time of the Pareto law counts as two parameters: fitted, it raises twice the ln
    /// likelihood by a χ² with two degrees of freedom, where other parameters have one
    /// (`2nβ·ln(least/t_min)` is exponential with mean 2).
    #[must_use]
    pub fn aic(&self) -> Option<f64> {
        let parameters = match self.law.kind() {
            LawKind::Pareto => 3.0,
            LawKind::LogNormal | LawKind::Weibull => 2.0,
            LawKind::Empirical => return None,
        };
        Some(2.0 * (parameters - self.ln_likelihood?))
    }
}

/// All laws, fitted to one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// In the order of [`LawKind::ALL`]; empty if no attempt has ended.
    pub candidates: Vec<Candidate>,
    /// The law to use.
    pub best: Option<Law>,
    /// Hill's exponent of the longest twentieth of the ended attempts; absent with fewer than
    /// twenty or where all of those take equally long. Of a Pareto law it is the shape; lighter
    /// tails give larger ones.
    pub tail_exponent: Option<f64>,
}

/// Fits every law and says which to use.
///
/// The empirical law, where nearly all of 20 attempts or more have ended: it assumes nothing and
/// is right about what was seen. Otherwise, as with most of a job's attempts still running, the
/// law has to speak of times beyond all that were seen, which takes a family: that of the least
/// [`Candidate::aic`]. Cross-validation is no alternative, as a held-out attempt faster than the
/// rest is impossible under the Pareto law.
#[must_use]
pub fn fit(sample: &Sample) -> FitReport {
    let laws = LawKind::ALL
        .into_iter()
        .filter_map(|kind| max_likelihood(kind, sample));
    let candidates: Vec<Candidate> = laws
        .map(|law| Candidate {
            ln_likelihood: (law.kind() != LawKind::Empirical).then(|| sample.ln_likelihood(&law)),
            law,
        })
        .collect();
    let ended = sample.ended_count();
    let running = (sample.len() - ended) as f64;
    let is_seen_whole =
        ended >= EMPIRICAL_ENDED_MIN && running <= EMPIRICAL_RUNNING_MAX * sample.len() as f64;
    let best = if is_seen_whole {
        let mut laws = candidates.iter().map(|candidate| &candidate.law);
        laws.find(|law| law.kind() == LawKind::Empirical)
    } else {
        let rated = candidates.iter().filter_map(|c| Some((c.aic()?, &c.law)));
        let least = rated.min_by(|a, b| a.0.total_cmp(&b.0));
        least.map(|(_, law)| law)
    };
    FitReport {
        best: best.cloned(),
        tail_exponent: sample.hill((ended as f64 * TAIL_SHARE) as usize),
        candidates,
    }
}
