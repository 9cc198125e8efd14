//! Calibrated PoCD: the share of past jobs with a similar PoCD at the same moment of their time that met their
//! deadline. A PoCD assumes which attempts later passes launch. Only experience shows what they gain. The first jobs
//! count little next to the PoCD itself.

use std::collections::BTreeMap;

use crate::ids::{JobKey, Tenant};

mod calibration;

pub use calibration::Calibration;

/// The moments at which a job's PoCD is noted, as shares of its time to the deadline. The first one is noted as soon
/// as it is known.
const MOMENTS: [f64; 8] = [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];

/// The weight of a PoCD itself, in jobs.
const PRIOR: f64 = 1.0;

/// The standard deviation of the kernel: a job whose PoCD differs by this much counts 0.6.
const WIDTH: f64 = 0.05;

/// Sums are kept at PoCDs this far apart, and interpolated in between.
const CELL: f64 = 0.01;
const CELLS: usize = 101;

/// The factor by which each job reduces the weight of those before it. Jobs, nodes and policies change, and some
/// thousand jobs suffice.
const KEPT: f64 = 0.999;

/// All jobs of another tenant weigh at most this many of a tenant's own.
const FOREIGN_MAX: f64 = 0.25;

/// The jobs of others count from this number of other tenants on: no two of them decide what a tenant sees.
const FOREIGN_MIN: u32 = 4;

/// Tenants that are remembered; the one that learned longest ago is forgotten first.
const TENANTS_MAX: usize = 256;

/// The results of jobs by their PoCD at one moment of their time.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    jobs: u32,
    cells: [Cell; CELLS],
}

/// Jobs of a similar PoCD, each weighted by its distance.
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
    /// Adds a job that has ended: its PoCD then, in [0, 1], and whether it was in time.
    pub fn learn(&mut self, pocd: f64, met: bool) {
        self.jobs = self.jobs.saturating_add(1);
        for (number, cell) in self.cells.iter_mut().enumerate() {
            let z = (number as f64 * CELL - pocd) / WIDTH;
            let weight = libm::exp(-z * z / 2.0);
            cell.count = KEPT * cell.count + weight;
            cell.met = KEPT * cell.met + weight * f64::from(u8::from(met));
        }
    }

    /// P(a job with this PoCD, in [0, 1], is in time).
    pub fn of(&self, pocd: f64) -> f64 {
        self.of_with(&Self::default(), pocd, pocd)
    }

    /// The same for a tenant with these results, combined with those of others: `common` holds the results of each
    /// tenant as one witness, including this one's. Without any results it is `prior`.
    fn of_with(&self, common: &Self, pocd: f64, prior: f64) -> f64 {
        let others = common.jobs.saturating_sub(self.jobs.min(1));
        let cell = |at: usize| {
            let (own, all) = (self.cells.get(at)?, common.cells.get(at)?);
            let witness = own.as_witness();
            let foreign = match others < FOREIGN_MIN {
                true => Cell::default(),
                false => Cell {
                    count: all.count - witness.count,
                    met: all.met - witness.met,
                },
            };
            Some(Cell {
                count: own.count + foreign.count,
                met: own.met + foreign.met,
            })
        };
        forecast(pocd, prior, cell)
    }

    /// Adds a tenant's results as one witness.
    fn add_witness(&mut self, own: &Self) {
        self.jobs = self.jobs.saturating_add(own.jobs.min(1));
        for (cell, own) in self.cells.iter_mut().zip(&own.cells) {
            let witness = own.as_witness();
            cell.count += witness.count;
            cell.met += witness.met;
        }
    }
}

impl Cell {
    /// The weight of the cell for other tenants.
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

/// Calibrates a PoCD from the known jobs, whose sums `cell` returns.
fn forecast(pocd: f64, prior: f64, cell: impl Fn(usize) -> Option<Cell>) -> f64 {
    let place = pocd.clamp(0.0, 1.0) / CELL;
    let lower = (place as usize).min(CELLS - 2);
    let part = place - lower as f64;
    let cell = |at| cell(at).unwrap_or_default();
    let (below, above) = (cell(lower), cell(lower + 1));
    let count = between(below.count, above.count, part);
    let met = between(below.met, above.met, part);
    (PRIOR * prior + met) / (PRIOR + count)
}

fn between(below: f64, above: f64, part: f64) -> f64 {
    below + (above - below) * part
}

/// Calibrated PoCDs at any time of a job, for an executor that plans pass by pass. A job's value comes from its own
/// tenant's jobs; all jobs of another tenant count as one at most.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecasts {
    tenants: BTreeMap<Tenant, Taught>,
    /// The results of all tenants, each as one job at most.
    common: [Forecast; MOMENTS.len()],
    /// The PoCD of the unfinished jobs at each moment.
    said: BTreeMap<JobKey, Said>,
    /// The number of jobs that have been learned from.
    lessons: u64,
}

/// The results of one tenant's jobs.
#[derive(Debug, Clone, Default, PartialEq)]
struct Taught {
    moments: [Forecast; MOMENTS.len()],
    /// When the tenant's last job was learned from, counted in jobs.
    last: u64,
}

/// The PoCDs of one job.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    tenant: Tenant,
    pocds: [Option<f64>; MOMENTS.len()],
}

impl Forecasts {
    /// Notes a job's PoCD in a pass, and returns its calibrated PoCD: P(the job is in time), in [0, 1]. `passed` is
    /// the share of its time to the deadline that has passed; at 1 the job is late.
    pub fn say(&mut self, tenant: &Tenant, job: &JobKey, passed: f64, pocd: f64) -> f64 {
        if passed >= 1.0 {
            return 0.0;
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
        let last = next.saturating_sub(1);
        let before = self.of(tenant, last, pocd, pocd);
        // Fewer jobs live until the next moment, so there may be few results of it.
        let after = self.of(tenant, next, pocd, before);
        let part = (passed - MOMENTS[last]) / (MOMENTS[1] - MOMENTS[0]);
        between(before, after, part)
    }

    /// The tenant's calibrated PoCD at that moment; `prior` without results.
    fn of(&self, tenant: &Tenant, moment: usize, pocd: f64, prior: f64) -> f64 {
        let Some(common) = self.common.get(moment) else {
            return prior;
        };
        let own = self
            .tenants
            .get(tenant)
            .and_then(|own| own.moments.get(moment));
        match own {
            Some(own) => own.of_with(common, pocd, prior),
            None => Forecast::default().of_with(common, pocd, prior),
        }
    }

    /// Records whether a job met its deadline. Later PoCDs of the job are not learned from.
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
        self.combine();
    }

    /// Sums up the results of all tenants.
    fn combine(&mut self) {
        self.common = Default::default();
        for taught in self.tenants.values() {
            for (common, own) in self.common.iter_mut().zip(&taught.moments) {
                common.add_witness(own);
            }
        }
    }

    /// Forgets jobs that were removed without a result.
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
        assert!((forecast.of(0.2) - 0.9).abs() < 0.01);
        assert!((forecast.of(0.8) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn the_first_jobs_already_count_and_the_pocd_with_them() {
        let mut forecast = Forecast::default();
        let mut shown = vec![forecast.of(0.2)];
        for _ in 0..4 {
            forecast.learn(0.2, true);
            shown.push(forecast.of(0.2));
        }
        let expected = [0.2, 1.2 / 2.0, 2.2 / 3.0, 3.2 / 4.0, 4.2 / 5.0];
        for (shown, expected) in shown.into_iter().zip(expected) {
            assert!((shown - expected).abs() < 0.001, "{shown} {expected}");
        }
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
        assert!((forecast.of(0.3333) - met / count).abs() < 1e-3);
    }

    #[test]
    fn a_cluster_that_changes_is_learned_anew() {
        let mut forecast = Forecast::default();
        (0..3000).for_each(|_| forecast.learn(0.5, true));
        (0..3000).for_each(|_| forecast.learn(0.5, false));
        assert!(forecast.of(0.5) < 0.06);
    }

    #[test]
    fn a_job_is_compared_with_others_at_the_same_moment() {
        let mut forecasts = Forecasts::default();
        for number in 0..40 {
            let key = JobKey::from(format!("{number}").as_str());
            forecasts.say(&ours(), &key, 0.0, 0.5);
            forecasts.say(&ours(), &key, 0.3, 0.5);
            // Every second job ends in time before the next moment; none of the others does.
            let is_early = number % 2 == 0;
            if !is_early {
                forecasts.say(&ours(), &key, 0.9, 0.5);
            }
            forecasts.learn(&key, is_early);
        }
        let next = JobKey::from("next");
        let at = |forecasts: &mut Forecasts, passed| forecasts.say(&ours(), &next, passed, 0.5);
        assert!((at(&mut forecasts, 0.0) - 0.5).abs() < 0.01);
        // No job was seen between these two moments, so the results of the first one apply.
        assert!((at(&mut forecasts, 0.26) - 0.5).abs() < 0.1);
        for number in 40..80 {
            let key = JobKey::from(format!("{number}").as_str());
            forecasts.say(&ours(), &key, 0.9, 0.5);
            forecasts.learn(&key, false);
        }
        assert!(at(&mut forecasts, 0.95) < 0.02);
        assert_eq!(forecasts.say(&ours(), &next, 1.0, 0.9), 0.0);
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
        // Each counts 0.999 times as much after the next.
        let all = (1.0 - KEPT.powi(100)) / (1.0 - KEPT);
        let early = (all + PRIOR * 0.5) / (all + PRIOR);
        let late = PRIOR * early / (all + PRIOR);
        let third = forecasts.say(&ours(), &JobKey::from("next"), 0.25 + 0.125 / 3.0, 0.5);
        let wanted = between(early, late, 1.0 / 3.0);
        assert!((third - wanted).abs() < 0.001, "{third}");
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

    /// Ends this many jobs with a PoCD of 0.5.
    fn end(forecasts: &mut Forecasts, tenant: &str, jobs: u32, met: bool) {
        let tenant = Tenant::from(tenant);
        for number in 0..jobs {
            let key = JobKey::from(format!("{tenant}-{number}").as_str());
            forecasts.say(&tenant, &key, 0.0, 0.5);
            forecasts.learn(&key, met);
        }
    }

    #[test]
    fn jobs_of_few_other_tenants_count_for_nothing() {
        let mut forecasts = Forecasts::default();
        end(&mut forecasts, "ours", 100, true);
        let next = JobKey::from("next");
        let stranger = Tenant::from("stranger");
        let alone = forecasts.say(&ours(), &next, 0.0, 0.5);
        end(&mut forecasts, "theirs", 5000, false);
        assert_eq!(forecasts.say(&ours(), &next, 0.0, 0.5), alone);
        assert_eq!(forecasts.say(&stranger, &JobKey::from("s"), 0.0, 0.5), 0.5);
        for number in 0..FOREIGN_MIN {
            end(&mut forecasts, &format!("t{number}"), 1, false);
        }
        let with_others = forecasts.say(&ours(), &next, 0.0, 0.5);
        assert!(with_others < alone);
        assert!((alone - with_others).abs() < 0.02, "{alone} {with_others}");
    }

    #[test]
    fn many_tenants_tell_one_that_has_seen_nothing() {
        let mut forecasts = Forecasts::default();
        for number in 0..40 {
            end(&mut forecasts, &format!("t{number}"), 3, true);
        }
        let reported = forecasts.say(&ours(), &JobKey::from("next"), 0.0, 0.5);
        assert!(reported > 0.9, "{reported}");
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
