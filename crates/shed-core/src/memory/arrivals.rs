//! The demands of the jobs that arrived lately, from which a policy predicts future demand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::JobKey;
use crate::time::Instant;

/// Jobs that are remembered, those submitted last.
const JOBS_MAX: usize = 256;

/// The least time in seconds that a job stays, so that its demand is above zero.
const STAY_MIN: f64 = 0.001;

/// The demand of one job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// When the job was submitted.
    pub submitted: Instant,
    /// The share of the usable capacity that the job's tasks take together, as many as may run at a time.
    #[serde(with = "float")]
    pub width: f64,
    /// That share times the seconds that all its tasks hold it.
    #[serde(with = "float")]
    pub volume: f64,
    /// Seconds for which a task could wait without being late.
    #[serde(with = "float")]
    pub slack: f64,
    /// The job's deadline.
    #[serde(default)]
    pub deadline: Instant,
    /// Whether an attempt of the job has begun.
    #[serde(default = "as_before")]
    pub has_run: bool,
    /// Whether attempts of the job held capacity in the last pass: it may have run since.
    #[serde(default)]
    pub is_launched: bool,
}

/// Memories without this field kept every job, whatever its result.
fn as_before() -> bool {
    true
}

/// The jobs that arrived last, ascending by key. Each look at a job reads them all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<JobKey, Arrival>", into = "BTreeMap<JobKey, Arrival>")]
pub struct Arrivals(Vec<(JobKey, Arrival)>);

impl From<BTreeMap<JobKey, Arrival>> for Arrivals {
    fn from(arrivals: BTreeMap<JobKey, Arrival>) -> Self {
        Self(arrivals.into_iter().collect())
    }
}

impl From<Arrivals> for BTreeMap<JobKey, Arrival> {
    fn from(arrivals: Arrivals) -> Self {
        arrivals.0.into_iter().collect()
    }
}

impl Arrivals {
    /// The job's place, or where it belongs.
    fn find(&self, key: &JobKey) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(key))
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers the job's demand, by the present estimate. If there are too many jobs, those that arrived first are
    /// forgotten.
    pub fn note(&mut self, key: &JobKey, arrival: Arrival) {
        match self.find(key) {
            Ok(at) => {
                if let Some((_, known)) = self.0.get_mut(at) {
                    *known = arrival;
                }
            }
            Err(at) => self.0.insert(at, (key.clone(), arrival)),
        }
        if self.0.len() > JOBS_MAX {
            let all = self.0.iter().enumerate();
            // Of equals the first by key.
            if let Some((oldest, _)) = all.min_by_key(|(_, (_, it))| it.submitted) {
                self.0.remove(oldest);
            }
        }
    }

    /// Whether the job is remembered.
    #[must_use]
    pub fn has(&self, key: &JobKey) -> bool {
        self.find(key).is_ok()
    }

    /// Whether the job is remembered as one that has run.
    #[must_use]
    pub fn has_run(&self, key: &JobKey) -> bool {
        let known = self.find(key).ok().and_then(|at| self.0.get(at));
        known.is_some_and(|(_, arrival)| arrival.has_run)
    }

    /// Records whether the job has run, and whether its attempts hold capacity.
    pub fn mark(&mut self, key: &JobKey, has_run: bool, is_launched: bool) {
        let known = self.find(key).ok().and_then(|at| self.0.get_mut(at));
        if let Some((_, arrival)) = known {
            (arrival.has_run, arrival.is_launched) = (has_run, is_launched);
        }
    }

    /// Replaces the job's demand by the present estimate, and keeps what is recorded of its attempts.
    pub fn renew(&mut self, key: &JobKey, arrival: Arrival) {
        let known = self.find(key).ok().and_then(|at| self.0.get_mut(at));
        if let Some((_, known)) = known {
            *known = Arrival {
                has_run: known.has_run,
                is_launched: known.is_launched,
                ..arrival
            };
        }
    }

    /// Forgets the job.
    pub fn withdraw(&mut self, key: &JobKey) {
        if let Ok(at) = self.find(key) {
            self.0.remove(at);
        }
    }

    /// Notes which jobs are gone. Of those that left before their deadline the ones that have never run are forgotten,
    /// since their users withdrew them. The others demanded no more than their width for as long as they were there.
    pub fn note_departures(&mut self, now: Instant, is_present: impl Fn(&JobKey) -> bool) {
        self.0.retain_mut(|(key, arrival)| {
            if arrival.deadline <= now || is_present(key) {
                return true;
            }
            let stayed = now.since(arrival.submitted).seconds().max(STAY_MIN);
            arrival.volume = arrival.volume.min(arrival.width * stayed);
            arrival.has_run || arrival.is_launched
        });
    }

    /// Whether a job is remembered that still could be in time.
    #[must_use]
    pub fn may_depart(&self, now: Instant) -> bool {
        self.0.iter().any(|(_, arrival)| arrival.deadline > now)
    }

    /// Whether one of those has not run.
    #[must_use]
    pub fn may_be_withdrawn(&self, now: Instant) -> bool {
        let mut all = self.0.iter();
        all.any(|(_, arrival)| !arrival.has_run && arrival.deadline > now)
    }

    /// When the first of the remembered jobs arrived.
    #[must_use]
    pub fn first(&self) -> Option<Instant> {
        self.0.iter().map(|(_, arrival)| arrival.submitted).min()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps as many jobs as `kept` returns for their number, those submitted last.
    pub(super) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        let surplus = self.0.len().saturating_sub(kept(self.0.len()));
        let mut by_time: Vec<(Instant, JobKey)> = self
            .0
            .iter()
            .map(|(key, arrival)| (arrival.submitted, key.clone()))
            .collect();
        by_time.sort_unstable();
        for (_, key) in by_time.into_iter().take(surplus) {
            self.withdraw(&key);
        }
    }

    /// Whether demands and slacks are such as jobs have. There are not more jobs than are remembered.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |arrival: &Arrival| {
            let is_width = arrival.width.is_finite() && arrival.width >= 0.0;
            let is_volume = arrival.volume.is_finite() && arrival.volume > 0.0;
            is_width && is_volume && !arrival.slack.is_nan()
        };
        self.0.len() <= JOBS_MAX && self.0.iter().all(|(_, arrival)| is_sound(arrival))
    }

    /// All remembered jobs.
    pub fn iter(&self) -> impl Iterator<Item = (&JobKey, &Arrival)> {
        self.0.iter().map(|(key, arrival)| (key, arrival))
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
                deadline: Instant(at + 9),
                has_run: false,
                is_launched: false,
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
