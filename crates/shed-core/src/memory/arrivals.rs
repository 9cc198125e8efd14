//! The demands of the jobs that arrived lately, from which a policy predicts future demand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{JobKey, Tenant};
use crate::tenant_fairness::surplus;
use crate::time::Instant;

/// Jobs that are remembered; the one of the tenant with the most that was submitted first is forgotten first.
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
    /// P(the job is in time), in [0, 1]: the deadlines that it is expected to meet.
    #[serde(with = "float", default = "as_certain")]
    pub hope: f64,
    /// Seconds for which a task could wait without being late.
    #[serde(with = "float")]
    pub slack: f64,
    /// Whether an attempt of the job has begun.
    #[serde(default = "as_before")]
    pub has_run: bool,
    /// Whether attempts of the job held capacity in the last pass: it may have run since.
    #[serde(default)]
    pub is_launched: bool,
    /// Whether the job has left. Its volume is what it was served at most.
    #[serde(default)]
    pub is_gone: bool,
}

/// Memories without this field took every job for one that is in time.
fn as_certain() -> f64 {
    1.0
}

/// Memories without this field kept every job, whatever its result.
fn as_before() -> bool {
    true
}

impl Arrival {
    /// Deadlines met per share and second by the whole job.
    pub fn density(&self) -> f64 {
        self.hope / self.volume
    }
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

/// The jobs that arrived last, ascending by key. Each look at a job reads them all.
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

    fn get(&self, key: &JobKey) -> Option<&Arrival> {
        let noted = self.find(key).ok().and_then(|at| self.0.get(at));
        noted.map(|(_, noted)| &noted.arrival)
    }

    fn get_mut(&mut self, key: &JobKey) -> Option<&mut Arrival> {
        let noted = self.find(key).ok().and_then(|at| self.0.get_mut(at));
        noted.map(|(_, noted)| &mut noted.arrival)
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

    /// Whether the job is remembered as one that has run.
    pub fn has_run(&self, key: &JobKey) -> bool {
        self.get(key).is_some_and(|arrival| arrival.has_run)
    }

    /// Records whether the job has run, and whether its attempts hold capacity.
    pub fn mark(&mut self, key: &JobKey, has_run: bool, is_launched: bool) {
        if let Some(arrival) = self.get_mut(key) {
            (arrival.has_run, arrival.is_launched) = (has_run, is_launched);
        }
    }

    /// Replaces the job's demand by the present estimate, and keeps what is recorded of its attempts.
    pub fn renew(&mut self, key: &JobKey, arrival: Arrival) {
        if let Some(known) = self.get_mut(key) {
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

    /// Notes which jobs are gone. Those that have never run are forgotten: they were served nothing. The others demanded
    /// no more than their width for as long as they were there.
    pub fn note_departures(&mut self, now: Instant, is_present: impl Fn(&JobKey) -> bool) {
        self.0.retain_mut(|(key, NotedArrival { arrival, .. })| {
            if arrival.is_gone || is_present(key) {
                return true;
            }
            arrival.is_gone = true;
            let stayed = now.since(arrival.submitted).seconds().max(STAY_MIN);
            arrival.volume = arrival.volume.min(arrival.width * stayed);
            arrival.has_run || arrival.is_launched
        });
    }

    /// Whether a job is remembered that has not left.
    pub fn may_depart(&self) -> bool {
        self.iter().any(|(_, arrival)| !arrival.is_gone)
    }

    /// Whether a job is remembered that has not run.
    pub fn may_be_withdrawn(&self) -> bool {
        self.iter().any(|(_, arrival)| !arrival.has_run)
    }

    /// When the first of the remembered jobs arrived.
    pub fn first(&self) -> Option<Instant> {
        self.iter().map(|(_, arrival)| arrival.submitted).min()
    }

    /// When the first of the tenant's remembered jobs arrived.
    pub fn first_of(&self, tenant: &Tenant) -> Option<Instant> {
        let own = self.of_tenant(tenant);
        own.map(|(_, arrival)| arrival.submitted).min()
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
        for key in &surplus {
            self.withdraw(key);
        }
    }

    /// Whether demands and slacks are such as jobs have. There are not more jobs than are remembered.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |arrival: &Arrival| {
            let is_width = arrival.width.is_finite() && arrival.width >= 0.0;
            let is_volume = arrival.volume.is_finite() && arrival.volume > 0.0;
            let is_hope = (0.0..=1.0).contains(&arrival.hope);
            is_width && is_volume && is_hope && !arrival.slack.is_nan()
        };
        self.0.len() <= JOBS_MAX && self.iter().all(|(_, arrival)| is_sound(arrival))
    }

    /// The remembered jobs of the tenant, and those whose tenant is not known.
    pub fn of_tenant(&self, tenant: &Tenant) -> impl Iterator<Item = (&JobKey, &Arrival)> {
        let all = self.0.iter();
        let own = all.filter(move |(_, noted)| noted.tenant.as_ref().is_none_or(|it| it == tenant));
        own.map(|(key, noted)| (key, &noted.arrival))
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
            width: 0.1,
            volume: 2.0,
            hope: 1.0,
            slack: 3.0,
            has_run: false,
            is_launched: false,
            is_gone: false,
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
