//! What the jobs that came lately asked for, by which a policy can tell what is likely to come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::JobKey;
use crate::time::Instant;

/// Jobs that are remembered, those submitted last.
const JOBS_MAX: usize = 256;

/// What one job asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// When it came.
    pub submitted: Instant,
    /// The share of what is usable that its tasks take together, as many as may run at a time.
    #[serde(with = "float")]
    pub width: f64,
    /// That share times the seconds that all its tasks hold it.
    #[serde(with = "float")]
    pub volume: f64,
    /// Seconds for which a task could wait without being late.
    #[serde(with = "float")]
    pub slack: f64,
}

/// The jobs that came last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arrivals(BTreeMap<JobKey, Arrival>);

impl Arrivals {
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers what the job asks for, by what is known of it now. Of too many jobs those that
    /// came first are forgotten.
    pub fn note(&mut self, key: &JobKey, arrival: Arrival) {
        self.0.insert(key.clone(), arrival);
        if self.0.len() > JOBS_MAX {
            let oldest = self.0.iter().min_by_key(|(key, it)| (it.submitted, *key));
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.0.remove(&key);
            }
        }
    }

    /// When the first of them came.
    #[must_use]
    pub fn first(&self) -> Option<Instant> {
        self.0.values().map(|arrival| arrival.submitted).min()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&JobKey, &Arrival)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_that_came_first_are_forgotten_first() {
        let mut arrivals = Arrivals::default();
        for at in 0..300 {
            let arrival = Arrival {
                submitted: Instant(at),
                width: 0.1,
                volume: 2.0,
                slack: 3.0,
            };
            arrivals.note(&JobKey::from(&*format!("j{at}")), arrival);
        }
        assert_eq!(arrivals.iter().count(), JOBS_MAX);
        assert_eq!(arrivals.first(), Some(Instant(300 - JOBS_MAX as i64)));
        let again = *arrivals.iter().next().unwrap().1;
        arrivals.note(&JobKey::from("j299"), again);
        assert_eq!(arrivals.iter().count(), JOBS_MAX);
    }
}
