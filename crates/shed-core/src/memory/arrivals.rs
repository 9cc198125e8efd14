//! The demands of the jobs that arrived lately, from which a policy measures the load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{JobKey, Tenant};
use crate::tenant_fairness::surplus;
use crate::time::Instant;

/// Jobs that are remembered; the one of the tenant with the most that was submitted first is forgotten first.
const JOBS_MAX: usize = 256;

/// The demand of one job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// When the job was submitted.
    pub submitted: Instant,
    /// The share of the usable capacity that an attempt takes, times the seconds that the job's tasks hold it.
    #[serde(with = "float")]
    pub volume: f64,
}

/// The demand of a job, and whose job it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NotedArrival {
    /// Memories without this field count as those of one tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<Tenant>,
    #[serde(flatten)]
    arrival: Arrival,
}

/// The jobs that arrived last, ascending by key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(
    from = "BTreeMap<JobKey, NotedArrival>",
    into = "BTreeMap<JobKey, NotedArrival>"
)]
pub struct Arrivals(Vec<(JobKey, NotedArrival)>);

impl From<BTreeMap<JobKey, NotedArrival>> for Arrivals {
    fn from(arrivals: BTreeMap<JobKey, NotedArrival>) -> Self {
        Self(arrivals.into_iter().collect())
    }
}

impl From<Arrivals> for BTreeMap<JobKey, NotedArrival> {
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

    /// Remembers the job's demand, by the present estimate. If there are too many jobs, the oldest one of the tenant
    /// with the most is forgotten.
    pub fn note(&mut self, key: &JobKey, tenant: &Tenant, arrival: Arrival) {
        match self.find(key) {
            Ok(at) => {
                if let Some((_, known)) = self.0.get_mut(at) {
                    known.arrival = arrival;
                }
            }
            Err(at) => {
                let tenant = Some(tenant.clone());
                let noted = NotedArrival { tenant, arrival };
                self.0.insert(at, (key.clone(), noted));
                self.keep_most(JOBS_MAX);
            }
        }
    }

    /// Whether the job is remembered.
    pub fn has(&self, key: &JobKey) -> bool {
        self.find(key).is_ok()
    }

    /// When the first of the remembered jobs arrived.
    pub fn first(&self) -> Option<Instant> {
        self.iter().map(|(_, arrival)| arrival.submitted).min()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps as many jobs as `kept` returns for their number.
    pub(super) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        self.keep_most(kept(self.0.len()));
    }

    fn keep_most(&mut self, max: usize) {
        let all = self.0.iter();
        let all = all.map(|(key, it)| (key, &it.tenant, it.arrival.submitted));
        let surplus: Vec<JobKey> = surplus(all, max).into_iter().cloned().collect();
        self.0.retain(|(key, _)| !surplus.contains(key));
    }

    /// Whether demands are such as jobs have. There are not more jobs than are remembered.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |it: &Arrival| it.volume.is_finite() && it.volume > 0.0;
        self.0.len() <= JOBS_MAX && self.iter().all(|(_, arrival)| is_sound(arrival))
    }

    /// All remembered jobs.
    pub fn iter(&self) -> impl Iterator<Item = (&JobKey, &Arrival)> {
        self.0.iter().map(|(key, noted)| (key, &noted.arrival))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes a job that arrived then.
    fn note(arrivals: &mut Arrivals, key: &str, tenant: &str, at: i64) {
        let arrival = Arrival {
            submitted: Instant(at),
            volume: 2.0,
        };
        arrivals.note(&JobKey::from(key), &Tenant::from(tenant), arrival);
    }

    #[test]
    fn the_jobs_that_came_first_are_forgotten_first() {
        let mut arrivals = Arrivals::default();
        for at in 0..300 {
            note(&mut arrivals, &format!("j{at}"), "ours", at);
        }
        assert_eq!(arrivals.iter().count(), JOBS_MAX);
        assert_eq!(arrivals.first(), Some(Instant(300 - JOBS_MAX as i64)));
        note(&mut arrivals, "j299", "ours", 299);
        assert_eq!(arrivals.iter().count(), JOBS_MAX);
    }

    #[test]
    fn a_tenant_of_many_jobs_costs_no_other_tenant_an_arrival() {
        let mut arrivals = Arrivals::default();
        note(&mut arrivals, "nightly", "victim", 0);
        for at in 1..=300 {
            note(&mut arrivals, &format!("j{at}"), "evil", at);
        }
        assert_eq!(arrivals.iter().count(), JOBS_MAX);
        assert!(arrivals.has(&JobKey::from("nightly")));
        // Nor do they when the stored text is cut, and the next leader knows whose they are.
        let text = serde_json::to_string(&arrivals).unwrap();
        let mut restored: Arrivals = serde_json::from_str(&text).unwrap();
        assert_eq!(restored, arrivals);
        restored.keep(|_| 2);
        assert!(restored.has(&JobKey::from("nightly")));
    }
}
