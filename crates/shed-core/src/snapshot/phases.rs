//! What a run of several stages has to do in addition to a stage.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// A sum of task times: the sums of their means θ and of their standard deviations σ, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Σθ.
    pub mean: f64,
    /// Σσ.
    pub deviation: f64,
}

impl PhaseTime {
    /// Σ(θ + ρσ), as in DollyMP (14).
    pub fn effective(&self, rho: f64) -> f64 {
        self.mean + rho * self.deviation
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            mean: self.mean + other.mean,
            deviation: self.deviation + other.deviation,
        }
    }

    /// This many such times.
    #[must_use]
    pub fn times(self, count: f64) -> Self {
        Self {
            mean: self.mean * count,
            deviation: self.deviation * count,
        }
    }
}

/// The one with the larger mean is longer.
impl PartialOrd for PhaseTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.mean.partial_cmp(&other.mean)
    }
}

/// The unfinished phases of the run to which a stage belongs, from its graph and the usual times of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// A task of this phase.
    pub own: PhaseTime,
    /// The longest chain of the phases that depend on this one; none: zero.
    pub after: PhaseTime,
    /// The longest chain of unfinished phases that begins with another available one; none: zero.
    pub other_chain: PhaseTime,
    /// All unfinished tasks of the other phases, as of the last begin or end of a phase.
    pub volume: PhaseTime,
}
