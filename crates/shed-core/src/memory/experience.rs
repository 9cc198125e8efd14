//! The part of the planner's memory that was learned from past jobs. It belongs to no job, so no ledger holds it. An
//! executor that wants to keep it stores it elsewhere.

use serde::{Deserialize, Serialize};

use crate::estimate::history::History;
use crate::memory::{Arrivals, CloneGains, Restarts, ShownTimes};
use crate::time::Instant;

/// What the planner has learned from past jobs. A new field is durable as well. Only [`Experience::keep`] and
/// [`Experience::check`] have to know it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Experience {
    /// The times of the jobs of each class.
    pub(super) history: History,
    /// The results of attempts on nodes where slow ones were given up.
    #[serde(skip_serializing_if = "Restarts::are_none")]
    pub(super) restarts: Restarts,
    /// The demands of the jobs that arrived lately.
    #[serde(skip_serializing_if = "Arrivals::are_none")]
    pub(super) arrivals: Arrivals,
    /// What clones have gained.
    #[serde(skip_serializing_if = "CloneGains::are_none")]
    pub(super) clone_gains: CloneGains,
    /// The task times that recent jobs have shown.
    #[serde(skip_serializing_if = "ShownTimes::are_none")]
    pub(super) shown_times: ShownTimes,
}

/// The experience of a planner, for the next one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Durable {
    /// The jobs that had ended by then have taught it. Later ones teach by their ledgers.
    pub as_of: Instant,
    /// The experience.
    pub experience: Experience,
}

/// A value that no planner stores. The text names the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid(pub &'static str);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invalid value in `{}`", self.0)
    }
}

impl std::error::Error for Invalid {}

impl Experience {
    /// Without the jobs that have not ended: they teach when they end.
    pub(super) fn of_past_jobs(&self) -> Self {
        Self {
            history: self.history.without_jobs_under_way(),
            ..self.clone()
        }
    }

    /// The number of entries: classes, tenants and jobs.
    pub fn len(&self) -> usize {
        let of_jobs = self.history.len() + self.arrivals.len() + self.shown_times.len();
        of_jobs + self.restarts.len() + self.clone_gains.len()
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps this share of the entries of each kind, in [0, 1], rounded down. The entries that learned longest ago are
    /// dropped first.
    pub fn keep(&mut self, share: f64) {
        let share = share.clamp(0.0, 1.0);
        let kept = |count: usize| (count as f64 * share) as usize;
        self.history.keep(kept);
        self.restarts.keep(kept);
        self.arrivals.keep(kept);
        self.clone_gains.keep(kept);
        self.shown_times.keep(kept);
    }

    /// Whether a planner can rely on the values.
    ///
    /// # Errors
    /// The first field with a value that no planner stores.
    pub fn check(&self) -> Result<(), Invalid> {
        let fields = [
            ("history", self.history.is_sound()),
            ("restarts", self.restarts.is_sound()),
            ("arrivals", self.arrivals.is_sound()),
            ("clone_gains", self.clone_gains.is_sound()),
            ("shown_times", self.shown_times.is_sound()),
        ];
        let broken = fields.into_iter().find(|(_, is_sound)| !is_sound);
        broken.map_or(Ok(()), |(field, _)| Err(Invalid(field)))
    }
}
