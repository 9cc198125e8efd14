//! A forecast from a PoCD: what became of earlier jobs of which about as much was said at the same
//! moment of their time. A PoCD counts what lives and what the plan launches; what later passes
//! will do for a job only experience tells.

use std::collections::BTreeMap;

use crate::ids::JobKey;

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
        if self.jobs < JOBS_MIN {
            return None;
        }
        let place = pocd.clamp(0.0, 1.0) / CELL;
        let lower = (place as usize).min(CELLS - 2);
        let part = place - lower as f64;
        let (below, above) = (self.cells.get(lower)?, self.cells.get(lower + 1)?);
        let count = between(below.count, above.count, part);
        let met = between(below.met, above.met, part);
        Some((PRIOR * pocd + met) / (PRIOR + count))
    }
}

fn between(below: f64, above: f64, part: f64) -> f64 {
    below + (above - below) * part
}

/// Forecasts at any time of a job, for an executor that plans pass by pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecasts {
    moments: [Forecast; MOMENTS.len()],
    /// What was said at each moment of the jobs that are under way.
    said: BTreeMap<JobKey, [Option<f64>; MOMENTS.len()]>,
}

impl Forecasts {
    /// Notes what a pass says of a job, and forecasts what will come of it: P(it is in time), in
    /// [0, 1]. `passed` is the share of its time to the deadline that has passed; at 1 it is late.
    /// Absent while too few jobs have been seen.
    pub fn say(&mut self, job: &JobKey, passed: f64, pocd: f64) -> Option<f64> {
        if passed >= 1.0 {
            return Some(0.0);
        }
        let said = self.said.entry(job.clone()).or_default();
        for (slot, moment) in said.iter_mut().zip(MOMENTS) {
            if moment <= passed && slot.is_none() {
                *slot = Some(pocd);
            }
        }
        let next = MOMENTS.partition_point(|moment| *moment <= passed);
        let last = next.checked_sub(1)?;
        let before = self.moments.get(last)?.of(pocd)?;
        // Fewer jobs live until the next moment: what those tell may still be missing.
        let after = self.moments.get(next).and_then(|after| after.of(pocd));
        let part = (passed - MOMENTS[last]) / (MOMENTS[1] - MOMENTS[0]);
        Some(after.map_or(before, |after| between(before, after, part)))
    }

    /// The fate of a job is known. What is said of it from now on teaches nothing.
    pub fn learn(&mut self, job: &JobKey, met: bool) {
        let said = self.said.remove(job).unwrap_or_default();
        for (forecast, pocd) in self.moments.iter_mut().zip(said) {
            if let Some(pocd) = pocd {
                forecast.learn(pocd, met);
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
            assert_eq!(forecasts.say(&key, 0.0, 0.5).is_some(), number >= 30);
            forecasts.say(&key, 0.3, 0.5);
            // Every second job ends in time before the next moment; of those that are left none is.
            let is_early = number % 2 == 0;
            if !is_early {
                forecasts.say(&key, 0.9, 0.5);
            }
            forecasts.learn(&key, is_early);
        }
        let next = JobKey::from("next");
        let at = |forecasts: &mut Forecasts, passed| forecasts.say(&next, passed, 0.5).unwrap();
        assert!((at(&mut forecasts, 0.0) - 0.5).abs() < 0.01);
        // Too few lived until the last moments: what was seen before stands.
        assert!((at(&mut forecasts, 0.34) - 0.5).abs() < 0.01);
        for number in 40..80 {
            let key = JobKey::from(format!("{number}").as_str());
            forecasts.say(&key, 0.9, 0.5);
            forecasts.learn(&key, false);
        }
        assert!(at(&mut forecasts, 0.95) < 0.02);
        assert_eq!(forecasts.say(&next, 1.0, 0.9), Some(0.0));
    }

    #[test]
    fn between_two_moments_it_is_between_what_both_say() {
        let mut forecasts = Forecasts::default();
        for number in 0..100 {
            let key = JobKey::from(format!("{number}").as_str());
            forecasts.moments[2].learn(0.5, true);
            forecasts.moments[3].learn(0.5, false);
            forecasts.say(&key, 0.0, 0.5);
        }
        let (early, late) = (100.5 / 101.0, 0.5 / 101.0);
        let third = forecasts.say(&JobKey::from("next"), 0.25 + 0.125 / 3.0, 0.5);
        let wanted = between(early, late, 1.0 / 3.0);
        assert!((third.unwrap() - wanted).abs() < 0.01, "{third:?}");
    }

    #[test]
    fn a_job_that_went_without_a_fate_teaches_nothing() {
        let mut forecasts = Forecasts::default();
        let job = JobKey::from("gone");
        forecasts.say(&job, 0.0, 0.5);
        forecasts.retain(|_| false);
        forecasts.learn(&job, true);
        assert_eq!(forecasts, Forecasts::default());
    }
}
