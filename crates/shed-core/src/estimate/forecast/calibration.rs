//! What [`Forecasts`] have learned, in a compact form that an executor can store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CELLS, Cell, Forecast, Forecasts, MOMENTS, Taught};
use crate::ids::Tenant;
use crate::tenant_fairness::keep_newest;

/// Sums are stored in units of one job over this many.
const UNITS: f64 = 100.0;

/// The results of the jobs of each tenant. Jobs that have not ended are not part of it: they are learned from only
/// as far as their PoCDs are noted again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Calibration {
    tenants: BTreeMap<Tenant, StoredTenant>,
}

/// The results of one tenant's jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTenant {
    /// When its last job was learned from, counted in jobs.
    last: u64,
    /// One for each moment.
    moments: Vec<StoredForecast>,
}

/// The results at one moment: the cells from the first to the last one that is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredForecast {
    jobs: u32,
    /// The number of empty cells before them.
    first: usize,
    count: Vec<u32>,
    met: Vec<u32>,
}

impl Calibration {
    /// The number of tenants.
    pub fn len(&self) -> usize {
        self.tenants.len()
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// Keeps this share of the tenants, in [0, 1], rounded down. The tenants that learned longest ago are dropped
    /// first.
    pub fn keep(&mut self, share: f64) {
        let count = (self.tenants.len() as f64 * share.clamp(0.0, 1.0)) as usize;
        keep_newest(&mut self.tenants, count, |tenant| tenant.last);
    }

    /// Whether the values can be those of [`Forecasts`].
    pub fn is_sound(&self) -> bool {
        let is_sound = |forecast: &StoredForecast| {
            let cells = forecast.count.len();
            let mut pairs = forecast.count.iter().zip(&forecast.met);
            forecast.met.len() == cells
                && forecast.first.saturating_add(cells) <= CELLS
                && pairs.all(|(count, met)| met <= count)
        };
        let mut tenants = self.tenants.values();
        tenants.all(|tenant| {
            tenant.moments.len() == MOMENTS.len() && tenant.moments.iter().all(is_sound)
        })
    }
}

impl Forecasts {
    /// What was learned from past jobs, to a hundredth of a job.
    pub fn calibration(&self) -> Calibration {
        let stored = |taught: &Taught| StoredTenant {
            last: taught.last,
            moments: taught.moments.iter().map(StoredForecast::of).collect(),
        };
        let tenants = self.tenants.iter();
        let tenants = tenants.map(|(name, taught)| (name.clone(), stored(taught)));
        Calibration {
            tenants: tenants.collect(),
        }
    }

    /// Forecasts that go on from there.
    pub fn restored(calibration: &Calibration) -> Self {
        let taught = |stored: &StoredTenant| {
            let mut taught = Taught {
                last: stored.last,
                ..Taught::default()
            };
            for (forecast, stored) in taught.moments.iter_mut().zip(&stored.moments) {
                *forecast = stored.forecast();
            }
            taught
        };
        let tenants = calibration.tenants.iter();
        let mut forecasts = Self {
            tenants: tenants
                .map(|(name, it)| (name.clone(), taught(it)))
                .collect(),
            lessons: calibration
                .tenants
                .values()
                .map(|it| it.last)
                .max()
                .unwrap_or(0),
            ..Self::default()
        };
        forecasts.combine();
        forecasts
    }
}

impl StoredForecast {
    fn of(forecast: &Forecast) -> Self {
        let in_units = |sum: f64| (sum * UNITS).round() as u32;
        let cells = &forecast.cells;
        let is_empty = |cell: &&Cell| in_units(cell.count) == 0;
        let first = cells.iter().take_while(is_empty).count();
        let last = cells.len() - cells.iter().rev().take_while(is_empty).count();
        let cells = cells.get(first..last).unwrap_or_default();
        Self {
            jobs: forecast.jobs,
            first,
            count: cells.iter().map(|cell| in_units(cell.count)).collect(),
            met: cells.iter().map(|cell| in_units(cell.met)).collect(),
        }
    }

    fn forecast(&self) -> Forecast {
        let mut forecast = Forecast {
            jobs: self.jobs,
            ..Forecast::default()
        };
        let stored = self.count.iter().zip(&self.met);
        let cells = forecast.cells.iter_mut().skip(self.first);
        for (cell, (&count, &met)) in cells.zip(stored) {
            *cell = Cell {
                count: f64::from(count) / UNITS,
                met: f64::from(met) / UNITS,
            };
        }
        forecast
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::JobKey;

    /// Jobs of the tenant: of four with PoCD 0.8 three were in time.
    fn taught(tenants: &[&str], jobs: u32) -> Forecasts {
        let mut forecasts = Forecasts::default();
        for tenant in tenants {
            for job in 0..jobs {
                let key = JobKey::from(&*format!("{tenant}-{job}"));
                forecasts.say(&Tenant::from(*tenant), &key, 0.0, 0.8);
                forecasts.learn(&key, job % 4 != 0);
            }
        }
        forecasts
    }

    #[test]
    fn what_was_learned_is_restored_to_a_hundredth() {
        let before = taught(&["ours", "theirs"], 40);
        let text = serde_json::to_string(&before.calibration()).unwrap();
        let read: Calibration = serde_json::from_str(&text).unwrap();
        assert!(read.is_sound());
        let (mut before, mut after) = (before, Forecasts::restored(&read));
        let said = |forecasts: &mut Forecasts, tenant: &str, pocd| {
            forecasts.say(&Tenant::from(tenant), &JobKey::from("new"), 0.0, pocd)
        };
        for (tenant, pocd) in [
            ("ours", 0.8),
            ("ours", 0.7),
            ("theirs", 0.8),
            ("theirs", 0.2),
        ] {
            let (old, new) = (
                said(&mut before, tenant, pocd),
                said(&mut after, tenant, pocd),
            );
            assert!((old - new).abs() < 0.01, "{tenant} {pocd}: {old} {new}");
        }
    }

    #[test]
    fn the_tenants_that_learned_last_are_kept() {
        let mut calibration = taught(&["a", "b", "c"], 1).calibration();
        calibration.keep(0.7);
        let kept: Vec<&Tenant> = calibration.tenants.keys().collect();
        assert_eq!(kept, [&Tenant::from("b"), &Tenant::from("c")]);
        let mut restored = Forecasts::restored(&calibration);
        restored.say(&Tenant::from("d"), &JobKey::from("d"), 0.0, 0.8);
        restored.learn(&JobKey::from("d"), true);
        let mut next = restored.calibration();
        next.keep(0.4);
        assert_eq!(next.tenants.keys().next(), Some(&Tenant::from("d")));
    }

    #[test]
    fn edited_sums_are_noticed() {
        let text = serde_json::to_string(&taught(&["a"], 1).calibration()).unwrap();
        for (from, to) in [
            ("\"first\":", "\"first\":9"),
            ("\"met\":[0", "\"met\":[9"),
            ("\"count\":[", "\"count\":[1,"),
        ] {
            let edited = text.replacen(from, to, 1);
            assert_ne!(edited, text, "{from}");
            let read: Calibration = serde_json::from_str(&edited).unwrap();
            assert!(!read.is_sound(), "{to}");
        }
    }
}
