//! A forecast from a PoCD: what became of earlier jobs of which about as much was said at the same
//! moment of their time. A PoCD counts what lives and what the plan launches; what later passes
//! will do for a job only experience tells.

use std::collections::BTreeMap;

use crate::ids::{JobKey, Tenant};

/// When it is noted what is said of a job: as soon as anything is, and then when these shares of
/// its time to the deadline have passed.
const MOMENTS: [f64; 8] = [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];

/// With fewer jobs there is no forecast.
const JOBS_MIN: u32 = 30;

/// A PoCD itself counts as so many jobs.
const PRIOR: f64 = 1.0;

/// The standard deviation of the kernel: jobs of which that much more or less was said count for
/// 0.6 of one.
const WIDTH: f64 = 0.05;

/// Sums are kept at PoCDs that are so far apart, and read in between.
const CELL: f64 = 0.01;
const CELLS: usize = 101;

/// Each job makes those before it count for so much of what they did: jobs, nodes and policies
/// change, and some thousand jobs tell enough.
const KEPT: f64 = 0.999;

/// All jobs of another tenant weigh as much as so many of a tenant's own.
const FOREIGN_MAX: f64 = 1.0;

/// Tenants that are remembered; the one that learned longest ago is forgotten first.
const TENANTS_MAX: usize = 256;

/// What became of jobs, by what was said of them at one moment of their time.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    jobs: u32,
    cells: [Cell; CELLS],
}

/// Jobs of which about as much was said, each weighed by how near to it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cell {
    count: f64,
    met: f64,
}

impl Default for Forecast {
    fn default() -> Self {
        Self {
            jobs: 0,
            cells: [Cell::default(); CELLS],
        }
    }
}

impl Forecast {
    /// Takes in a job that has ended: what was said of it, in [0, 1], and whether it was in time.
    pub fn learn(&mut self, pocd: f64, met: bool) {
        self.jobs = self.jobs.saturating_add(1);
        for (number, cell) in self.cells.iter_mut().enumerate() {
            let z = (number as f64 * CELL - pocd) / WIDTH;
            let weight = libm::exp(-z * z / 2.0);
            cell.count = KEPT * cell.count + weight;
            cell.met = KEPT * cell.met + weight * f64::from(u8::from(met));
        }
    }

    /// P(a job is in time) of which that PoCD, in [0, 1], is said; absent while fewer than 30 jobs
    /// have been seen.
    #[must_use]
    pub fn of(&self, pocd: f64) -> Option<f64> {
        forecast(pocd, self.jobs, |at| self.cells.get(at).copied())
    }

    /// The same for a tenant that has seen this, with what others have: `common` holds each
    /// tenant's as one witness, this one's too.
    fn of_with(&self, common: &Self, pocd: f64) -> Option<f64> {
        let others = common.jobs.saturating_sub(self.witness_jobs());
        let cell = |at| {
            let (own, all): (&Cell, &Cell) = (self.cells.get(at)?, common.cells.get(at)?);
            let witness = own.as_witness();
            Some(Cell {
                count: own.count + (all.count - witness.count),
                met: own.met + (all.met - witness.met),
            })
        };
        forecast(pocd, self.jobs.saturating_add(others), cell)
    }

    /// Adds what a tenant has seen, as one witness.
    fn add_witness(&mut self, own: &Self) {
        self.jobs = self.jobs.saturating_add(own.witness_jobs());
        for (cell, own) in self.cells.iter_mut().zip(&own.cells) {
            let witness = own.as_witness();
            cell.count += witness.count;
            cell.met += witness.met;
        }
    }

    fn witness_jobs(&self) -> u32 {
        self.jobs.min(1)
    }
}

impl Cell {
    /// What it weighs for other tenants.
    fn as_witness(self) -> Self {
        let share = (FOREIGN_MAX / self.count).min(1.0);
        if self.count > 0.0 {
            Self {
                count: share * self.count,
                met: share * self.met,
            }
        } else {
            self
        }
    }
}

/// By what `cell` says of the jobs that were seen.
fn forecast(pocd: f64, jobs: u32, cell: impl Fn(usize) -> Option<Cell>) -> Option<f64> {
    if jobs < JOBS_MIN {
        return None;
    }
    let place = pocd.clamp(0.0, 1.0) / CELL;
    let lower = (place as usize).min(CELLS - 2);
    let part = place - lower as f64;
    let (below, above) = (cell(lower)?, cell(lower + 1)?);
    let count = between(below.count, above.count, part);
    let met = between(below.met, above.met, part);
    Some((PRIOR * pocd + met) / (PRIOR + count))
}

fn between(below: f64, above: f64, part: f64) -> f64 {
    below + (above - below) * part
}

/// Forecasts at any time of a job, for an executor that plans pass by pass. A job is forecast by
/// what became of its own tenant's jobs; all jobs of another tenant count as one at most.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecasts {
    tenants: BTreeMap<Tenant, Taught>,
    /// What all tenants have seen, each as one job at most.
    common: [Forecast; MOMENTS.len()],
    /// What was said at each moment of the jobs that are under way.
    said: BTreeMap<JobKey, Said>,
    /// How many jobs have taught anything.
    lessons: u64,
}

/// What became of one tenant's jobs.
#[derive(Debug, Clone, Default, PartialEq)]
struct Taught {
    moments: [Forecast; MOMENTS.len()],
    /// When the last job taught something, counted in jobs.
    last: u64,
}

/// What was said of one job.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    tenant: Tenant,
    pocds: [Option<f64>; MOMENTS.len()],
}

impl Forecasts {
    /// Notes what a pass says of a job, and forecasts what will come of it: P(it is in time), in
    /// [0, 1]. `passed` is the share of its time to the deadline that has passed; at 1 it is late.
    /// Absent while too few jobs have been seen.
    pub fn say(&mut self, tenant: &Tenant, job: &JobKey, passed: f64, pocd: f64) -> Option<f64> {
        if passed >= 1.0 {
            return Some(0.0);
        }
        let said = self.said.entry(job.clone()).or_insert_with(|| Said {
            tenant: tenant.clone(),
            pocds: [None; MOMENTS.len()],
        });
        for (slot, moment) in said.pocds.iter_mut().zip(MOMENTS) {
            if moment <= passed && slot.is_none() {
                *slot = Some(pocd);
            }
        }
        let next = MOMENTS.partition_point(|moment| *moment <= passed);
        let last = next.checked_sub(1)?;
        let before = self.of(tenant, last, pocd)?;
        // Fewer jobs live until the next moment: what those tell may still be missing.
        let after = self.of(tenant, next, pocd);
        let part = (passed - MOMENTS[last]) / (MOMENTS[1] - MOMENTS[0]);
        Some(after.map_or(before, |after| between(before, after, part)))
    }

    /// What the tenant may expect at that moment.
    fn of(&self, tenant: &Tenant, moment: usize, pocd: f64) -> Option<f64> {
        let common = self.common.get(moment)?;
        match self.tenants.get(tenant) {
            Some(own) => own.moments.get(moment)?.of_with(common, pocd),
            None => common.of(pocd),
        }
    }

    /// The fate of a job is known. What is said of it from now on teaches nothing.
    pub fn learn(&mut self, job: &JobKey, met: bool) {
        let Some(Said { tenant, pocds }) = self.said.remove(job) else {
            return;
        };
        self.lessons += 1;
        let taught = self.tenants.entry(tenant).or_default();
        taught.last = self.lessons;
        for (forecast, pocd) in taught.moments.iter_mut().zip(pocds) {
            if let Some(pocd) = pocd {
                forecast.learn(pocd, met);
            }
        }
        if self.tenants.len() > TENANTS_MAX {
            let oldest = self.tenants.iter().min_by_key(|(_, taught)| taught.last);
            if let Some(oldest) = oldest.map(|(tenant, _)| tenant.clone()) {
                self.tenants.remove(&oldest);
            }
        }
        self.common = Default::default();
        for taught in self.tenants.values() {
            for (common, own) in self.common.iter_mut().zip(&taught.moments) {
                common.add_witness(own);
            }
        }
    }

    /// Forgets jobs that went without a fate.
    pub fn retain(&mut self, exists: impl Fn(&JobKey) -> bool) {
        self.said.retain(|job, _| exists(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Tenant {
        Tenant::from("ours")
    }

    #[test]
    fn what_was_said_too_dark_is_put_right_where_it_was_said() {
        let mut forecast = Forecast::default();
        (0..1000).for_each(|n| forecast.learn(0.2, n % 10 != 0));
        assert!((forecast.of(0.2).unwrap() - 0.9).abs() < 0.01);
        assert_eq!(forecast.of(0.8), Some(0.8));
    }

    #[test]
    fn between_cells_it_is_what_the_kernel_says() {
        let mut forecast = Forecast::default();
        let jobs = (0..200_u32).map(|n| (f64::from(n % 40) / 40.0, n % 3 != 0));
        let (mut count, mut met) = (PRIOR, PRIOR * 0.3333);
        for (number, (pocd, is_met)) in jobs.enumerate() {
            forecast.learn(pocd, is_met);
            let z = (pocd - 0.3333) / WIDTH;
            let age = 199 - i32::try_from(number).unwrap();
            let weight = libm::exp(-z * z / 2.0) * KEPT.powi(age);
            count += weight;
            met += weight * f64::from(u8::from(is_met));
        }
        assert!((forecast.of(0.3333).unwrap() - met / count).abs() < 1e-3);
    }

    #[test]
    fn a_cluster_that_changes_is_learned_anew() {
        let mut forecast = Forecast::default();
        (0..3000).for_each(|_| forecast.learn(0.5, true));
        (0..3000).for_each(|_| forecast.learn(0.5, false));
        assert!(forecast.of(0.5).unwrap() < 0.06);
    }

    #[test]
    fn each_moment_of_a_job_is_held_against_the_same_moment_of_others() {
        let mut forecasts = Forecasts::default();
        for number in 0..40 {
            let key = JobKey::from(format!("{number}").as_str());
            assert_eq!(
                forecasts.say(&ours(), &key, 0.0, 0.5).is_some(),
                number >= 30
            );
            forecasts.say(&ours(), &key, 0.3, 0.5);
            // Every second job ends in time before the next moment; of those that are left none is.
            let is_early = number % 2 == 0;
            if !is_early {
                forecasts.say(&ours(), &key, 0.9, 0.5);
            }
            forecasts.learn(&key, is_early);
        }
        let next = JobKey::from("next");
        let at =
            |forecasts: &mut Forecasts, passed| forecasts.say(&ours(), &next, passed, 0.5).unwrap();
        assert!((at(&mut forecasts, 0.0) - 0.5).abs() < 0.01);
        // Too few lived until the last moments: what was seen before stands.
        assert!((at(&mut forecasts, 0.34) - 0.5).abs() < 0.01);
        for number in 40..80 {
            let key = JobKey::from(format!("{number}").as_str());
            forecasts.say(&ours(), &key, 0.9, 0.5);
            forecasts.learn(&key, false);
        }
        assert!(at(&mut forecasts, 0.95) < 0.02);
        assert_eq!(forecasts.say(&ours(), &next, 1.0, 0.9), Some(0.0));
    }

    #[test]
    fn between_two_moments_it_is_between_what_both_say() {
        let mut forecasts = Forecasts::default();
        for number in 0..100 {
            let key = JobKey::from(format!("{number}").as_str());
            let own = forecasts.tenants.entry(ours()).or_default();
            own.moments[2].learn(0.5, true);
            own.moments[3].learn(0.5, false);
            forecasts.say(&ours(), &key, 0.0, 0.5);
        }
        let (early, late) = (100.5 / 101.0, 0.5 / 101.0);
        let third = forecasts.say(&ours(), &JobKey::from("next"), 0.25 + 0.125 / 3.0, 0.5);
        let wanted = between(early, late, 1.0 / 3.0);
        assert!((third.unwrap() - wanted).abs() < 0.01, "{third:?}");
    }

    #[test]
    fn a_job_that_went_without_a_fate_teaches_nothing() {
        let mut forecasts = Forecasts::default();
        let job = JobKey::from("gone");
        forecasts.say(&ours(), &job, 0.0, 0.5);
        forecasts.retain(|_| false);
        forecasts.learn(&job, true);
        assert_eq!(forecasts, Forecasts::default());
    }

    /// So many jobs of which 0.5 was said end.
    fn end(forecasts: &mut Forecasts, tenant: &str, jobs: u32, met: bool) {
        let tenant = Tenant::from(tenant);
        for number in 0..jobs {
            let key = JobKey::from(format!("{tenant}-{number}").as_str());
            forecasts.say(&tenant, &key, 0.0, 0.5);
            forecasts.learn(&key, met);
        }
    }

    #[test]
    fn all_jobs_of_another_tenant_count_as_one() {
        let mut forecasts = Forecasts::default();
        end(&mut forecasts, "ours", 100, true);
        let next = JobKey::from("next");
        let alone = forecasts.say(&ours(), &next, 0.0, 0.5).unwrap();
        end(&mut forecasts, "theirs", 5000, false);
        let with_others = forecasts.say(&ours(), &next, 0.0, 0.5).unwrap();
        assert!((alone - with_others).abs() < 0.02, "{alone} {with_others}");
        assert!(with_others < alone);
        // Who has seen nothing is told nothing by one tenant alone.
        let stranger = Tenant::from("stranger");
        assert_eq!(forecasts.say(&stranger, &JobKey::from("s"), 0.0, 0.5), None);
    }

    #[test]
    fn many_tenants_tell_one_that_has_seen_nothing() {
        let mut forecasts = Forecasts::default();
        for number in 0..40 {
            end(&mut forecasts, &format!("t{number}"), 3, true);
        }
        let told = forecasts.say(&ours(), &JobKey::from("next"), 0.0, 0.5);
        assert!(told.unwrap() > 0.9, "{told:?}");
    }

    #[test]
    fn tenants_are_forgotten_by_when_they_learned_last() {
        let mut forecasts = Forecasts::default();
        end(&mut forecasts, "ours", 100, true);
        for number in 0..TENANTS_MAX {
            end(&mut forecasts, &format!("t{number}"), 1, true);
        }
        assert_eq!(forecasts.tenants.len(), TENANTS_MAX);
        assert!(!forecasts.tenants.contains_key(&ours()));
    }
}
