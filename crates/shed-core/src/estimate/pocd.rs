//! Probability of completion before the deadline (PoCD) of a task and of a job, in log space.
//!
//! A task is in time unless all its attempts miss, a job is in time when all its tasks are;
//! attempts are taken as independent (Shed (1), (2)).

use crate::estimate::distribution::{AttemptDistribution, Evidence};
use crate::estimate::log_tails::ln_one_minus_exp;
use crate::estimate::pareto::LN_CERTAIN;

/// ln of a task's PoCD, `ln(1 − e^ln_miss)`, given ln P(all its attempts miss).
///
/// Exact to the last digits on both sides: near a sure miss (result −∞) and near a sure
/// success (result −0 … tiny). An argument above 0 or NaN counts as a sure miss.
pub fn ln_task_pocd(ln_miss: f64) -> f64 {
    ln_one_minus_exp(ln_miss)
}

/// ln of the PoCD of a job of `tasks` equal tasks with `attempts` equal attempts each.
///
/// Shed Theorem 1 (5) when `ln_miss_attempt` is that of a new attempt, Shed Theorem 2 (9) when it
/// is that of the job's slowest task, Shed+ Theorem 1 (5) with one attempt. No attempt at all is
/// a sure miss.
pub fn ln_job_pocd_uniform(ln_miss_attempt: f64, attempts: u32, tasks: u32) -> f64 {
    if tasks == 0 {
        return 0.0;
    }
    f64::from(tasks) * ln_task_pocd(repeated(attempts, ln_miss_attempt))
}

/// ln of the mean of the probabilities with these logarithms.
pub(crate) fn ln_mean<const N: usize>(ln_probabilities: [f64; N]) -> f64 {
    let sum: f64 = ln_probabilities.into_iter().map(libm::exp).sum();
    libm::log(sum / N as f64).min(0.0)
}

/// The plain probability of a ln PoCD.
pub fn probability(ln_probability: f64) -> f64 {
    libm::exp(ln_probability)
}

/// `count` independent attempts with the same ln miss all miss. Never `0·∞`.
fn repeated(count: u32, ln_miss: f64) -> f64 {
    if count == 0 {
        LN_CERTAIN
    } else {
        f64::from(count) * ln_miss
    }
}

/// The probability that a task misses, split so that the effect of one more clone can be computed.
///
/// The optimizer decides by it and an explanation shows it. All logarithms are in `[-∞, 0]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskMiss {
    /// ln P(every live attempt misses): the sum of their ln misses, 0 when none lives.
    pub ln_miss_present: f64,
    /// ln P(one further clone, launched now, misses).
    pub ln_miss_per_clone: f64,
    /// Further clones granted on top of the live attempts.
    pub clones: u32,
}

impl TaskMiss {
    /// ln P(the live attempts and all further clones miss).
    pub fn ln_miss(&self) -> f64 {
        self.ln_miss_present + repeated(self.clones, self.ln_miss_per_clone)
    }

    /// ln of the task's PoCD.
    pub fn ln_pocd(&self) -> f64 {
        ln_task_pocd(self.ln_miss())
    }

    /// The increase of the task's ln PoCD, and so of the job's, by one more clone; ≥ 0.
    ///
    /// `ln((1 − miss·q) / (1 − miss))`, as one `log1p`. A difference of two logarithms would lose all precision where
    /// a clone hardly helps (q near 1). +∞ when the clone makes an impossible task possible; 0 when it cannot help.
    pub fn gain_of_one_more(&self) -> f64 {
        gain_of_one_more(self.ln_miss(), self.ln_miss_per_clone)
    }

    /// Whether the task cannot be in time, whatever number of further clones it gets.
    pub fn is_hopeless(&self) -> bool {
        self.ln_pocd().is_infinite() && !self.clone_can_help()
    }

    /// Whether a further clone has any chance to be in time.
    pub fn clone_can_help(&self) -> bool {
        self.ln_miss_per_clone < 0.0
    }
}

/// See [`TaskMiss::gain_of_one_more`].
pub fn gain_of_one_more(ln_miss: f64, ln_miss_per_clone: f64) -> f64 {
    if ln_miss_per_clone < 0.0 {
        if ln_miss < 0.0 {
            let saved = libm::exp(ln_miss) * -libm::expm1(ln_miss_per_clone);
            libm::log1p(saved / -libm::expm1(ln_miss))
        } else {
            f64::INFINITY
        }
    } else {
        0.0
    }
}

/// A live attempt, as a PoCD counts it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveAttempt {
    /// The share of the task that was done where the attempt began, 0…1: 0 for one that started over.
    pub begin: f64,
    /// The later facts about the attempt.
    pub evidence: Evidence,
}

impl LiveAttempt {
    /// ln P(the attempt does not end within `slack`).
    pub fn ln_miss(&self, distribution: &impl AttemptDistribution, slack: f64) -> f64 {
        match self.evidence {
            // The attempt's age covers only a share of the task.
            Evidence::Silent { .. } => self.part(distribution).ln_miss(self.evidence, slack),
            _ => distribution.ln_miss(self.evidence, slack),
        }
    }

    /// Expected time to the attempt's end: by its rate, or by its age.
    pub fn remaining(&self, distribution: &impl AttemptDistribution) -> f64 {
        match self.evidence {
            Evidence::Progress { phi } => distribution.scaled(1.0 - phi).mean(),
            Evidence::Predicted { t_rem, .. } => t_rem,
            Evidence::Silent { age } => self.part(distribution).mean_residual(age),
        }
    }

    fn part<L: AttemptDistribution>(&self, distribution: &L) -> L {
        distribution.scaled(1.0 - self.begin)
    }
}

/// ln P(an attempt that is launched now and begins at `begin` does not end within `slack`). Its launch takes
/// `overhead` (δ) of the slack. `begin` is 0 for a restart, larger for a resumed attempt. Its time is a sample of the
/// distribution. The papers' case is `overhead` 0.
pub fn ln_miss_of_launch(
    distribution: &impl AttemptDistribution,
    begin: f64,
    slack: f64,
    overhead: f64,
) -> f64 {
    distribution.ln_miss(Evidence::Progress { phi: begin }, slack - overhead)
}

/// How tasks without an attempt will start: some at once, and the others in waves, one period after another. A wave
/// has as many tasks as the job runs at a time.
///
/// That is pessimistic where capacity comes free before a whole wave has ended, and optimistic where one of its tasks
/// straggles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waves {
    /// The number of tasks that start at once.
    pub at_once: u32,
    /// The number of tasks that run at a time; 0 counts as 1.
    pub width: u32,
    /// From one wave to the next: the mean time of an attempt.
    pub period: f64,
}

impl Waves {
    /// The wave of the waiting task at that position; 0 for those that start at once.
    pub fn of(&self, position: u32) -> u32 {
        match position.checked_sub(self.at_once) {
            None => 0,
            Some(behind) => (behind / self.width.max(1)).saturating_add(1),
        }
    }

    /// The first position after a wave.
    fn end(&self, wave: u32) -> u32 {
        let behind = wave.saturating_mul(self.width.max(1));
        self.at_once.saturating_add(behind)
    }

    /// ln P(all waiting tasks are in time, each with one attempt): first those that begin at `begins`, then `fresh`
    /// ones that begin at 0. `slack` is the slack of the first wave without its launch overhead. A later wave has
    /// less slack by its waiting time.
    pub fn ln_pocd(
        &self,
        distribution: &impl AttemptDistribution,
        begins: impl IntoIterator<Item = f64>,
        fresh: u32,
        slack: f64,
    ) -> f64 {
        let ln_miss = |begin, wave| {
            let slack = slack - f64::from(wave) * self.period;
            distribution.ln_miss(Evidence::Progress { phi: begin }, slack)
        };
        let mut sum = 0.0;
        let mut position = 0u32;
        for begin in begins {
            sum += ln_task_pocd(ln_miss(begin, self.of(position)));
            position = position.saturating_add(1);
        }
        let end = position.saturating_add(fresh);
        while position < end {
            let wave = self.of(position);
            let next = self.end(wave).min(end);
            let miss = ln_miss(0.0, wave);
            if miss >= LN_CERTAIN {
                return f64::NEG_INFINITY;
            }
            sum += ln_job_pocd_uniform(miss, 1, next - position);
            position = next;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::pareto::{LN_IMPOSSIBLE, ParetoDistribution, ln_miss, ln_miss_silent};
    use crate::estimate::progress::{BETA_MAX, beta_from_remaining};

    #[test]
    fn the_papers_model_gives_its_known_pocd_table() {
        // Thm 1, t_min 120; PoCD for r = 0, 1, 2, 3.
        type Row = (u32, f64, f64, [f64; 4]);
        let table: [Row; 8] = [
            (5, 460.0, 1.5, [0.4892, 0.9143, 0.9882, 0.9984]),
            (5, 460.0, 2.0, [0.7030, 0.9771, 0.9984, 0.9999]),
            (10, 500.0, 1.5, [0.2863, 0.8701, 0.9839, 0.9981]),
            (10, 500.0, 2.0, [0.5525, 0.9673, 0.9981, 0.9999]),
            (20, 560.0, 1.5, [0.1238, 0.8206, 0.9807, 0.9981]),
            (20, 560.0, 2.0, [0.3906, 0.9587, 0.9981, 0.9999]),
            (10, 350.0, 1.5, [0.1064, 0.6627, 0.9220, 0.9839]),
            (10, 350.0, 2.0, [0.2863, 0.8701, 0.9839, 0.9981]),
        ];
        for (tasks, deadline, beta, expected) in table {
            let attempt = ln_miss(0.0, 120.0, deadline, beta);
            for (clones, pocd) in (0u32..).zip(expected) {
                let got = probability(ln_job_pocd_uniform(attempt, clones + 1, tasks));
                assert!(
                    (got - pocd).abs() < 1e-4,
                    "N {tasks} D {deadline} β {beta} r {clones}: {got}, not {pocd}"
                );
            }
        }
    }

    #[test]
    fn a_steady_task_gets_the_pocd_that_the_papers_model_gives_it() {
        // Half done after 200 s of 500 s: Thm 2 gives 0.911 with β 1.5, 0.900 with β of (14).
        let prior = ln_task_pocd(ln_miss(0.5, 120.0, 300.0, 1.5));
        assert!((probability(prior) - 0.911).abs() < 1e-3);
        let beta = 200.0 / (200.0 - 60.0);
        let estimated = ln_task_pocd(ln_miss(0.5, 120.0, 300.0, beta));
        assert!((probability(estimated) - 0.900).abs() < 1e-3);
    }

    #[test]
    fn a_job_without_tasks_is_in_time() {
        assert_eq!(ln_job_pocd_uniform(0.0, 1, 0), 0.0);
    }

    #[test]
    fn no_attempt_is_a_sure_miss() {
        assert_eq!(ln_job_pocd_uniform(-3.0, 0, 2), f64::NEG_INFINITY);
        assert_eq!(ln_job_pocd_uniform(f64::NEG_INFINITY, 1, 2), 0.0);
    }

    #[test]
    fn the_gain_keeps_its_digits_where_a_clone_hardly_helps() {
        let task = TaskMiss {
            ln_miss_present: -1.0,
            ln_miss_per_clone: -1e-15,
            clones: 0,
        };
        // The derivative of ln(1 − e^y) at −1, times the step.
        let expected = 1e-15 / (libm::exp(1.0) - 1.0);
        assert!((task.gain_of_one_more() / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_gain_is_seen_where_plain_pocds_are_all_1() {
        let task = TaskMiss {
            ln_miss_present: -60.0,
            ln_miss_per_clone: -60.0,
            clones: 0,
        };
        let gain = task.gain_of_one_more();
        assert!((gain / libm::exp(-60.0) - 1.0).abs() < 1e-12, "{gain}");
    }

    #[test]
    fn the_gain_equals_the_difference_of_the_two_pocds() {
        let task = TaskMiss {
            ln_miss_present: -0.3,
            ln_miss_per_clone: -0.8,
            clones: 2,
        };
        let one_more = TaskMiss { clones: 3, ..task };
        let difference = one_more.ln_pocd() - task.ln_pocd();
        assert!((task.gain_of_one_more() / difference - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_useful_clone_rescues_a_task_whose_original_surely_misses() {
        let mut task = TaskMiss {
            ln_miss_present: LN_CERTAIN,
            ln_miss_per_clone: -1.0,
            clones: 0,
        };
        assert!(!task.is_hopeless());
        assert_eq!(task.ln_pocd(), f64::NEG_INFINITY);
        assert_eq!(task.gain_of_one_more(), f64::INFINITY);
        task.ln_miss_per_clone = LN_CERTAIN;
        assert!(task.is_hopeless());
        assert_eq!(task.gain_of_one_more(), 0.0);
    }

    #[test]
    fn pareto_attempts_equal_the_papers_numbers_bit_for_bit() {
        let (t_min, beta, slack) = (120.0, 1.7, 333.0);
        let distribution = ParetoDistribution { t_min, beta };
        let of = |begin, evidence| LiveAttempt { begin, evidence };
        let (phi, t_rem, age) = (0.37, 210.0, 171.0);
        let reporting = of(0.0, Evidence::Predicted { phi, t_rem });
        let fitted = beta_from_remaining(Some(t_rem), phi, t_min, BETA_MAX).unwrap();
        assert_eq!(
            reporting.ln_miss(&distribution, slack),
            ln_miss(phi, t_min, slack, fitted)
        );
        let silent = of(0.3, Evidence::Silent { age });
        let part = (1.0 - 0.3) * t_min;
        assert_eq!(
            silent.ln_miss(&distribution, slack),
            ln_miss_silent(age, part, slack, beta)
        );
        assert_eq!(silent.remaining(&distribution), age / (beta - 1.0));
        let launched = ln_miss_of_launch(&distribution, phi, slack, 9.0);
        assert_eq!(launched, ln_miss(phi, t_min, slack - 9.0, beta));
    }

    #[test]
    fn an_attempt_that_resumed_is_judged_by_the_part_that_it_does() {
        let (t_min, beta) = (100.0, 2.0);
        let distribution = ParetoDistribution { t_min, beta };
        let young = LiveAttempt {
            begin: 0.5,
            evidence: Evidence::Silent { age: 20.0 },
        };
        // At least 50 s, with a mean of 100 s.
        let wanted = 2.0 * libm::log(50.0 / 70.0);
        assert!((young.ln_miss(&distribution, 50.0) - wanted).abs() < 1e-14);
        assert_eq!(young.remaining(&distribution), 80.0);
        let reporting = LiveAttempt {
            evidence: Evidence::Progress { phi: 0.75 },
            ..young
        };
        assert_eq!(reporting.remaining(&distribution), 50.0);
    }

    #[test]
    fn each_wave_has_a_period_less() {
        let (t_min, beta) = (10.0, 2.0);
        let distribution = ParetoDistribution { t_min, beta };
        let waves = Waves {
            at_once: 2,
            width: 2,
            period: 10.0,
        };
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6].map(|at| waves.of(at)),
            [0, 0, 1, 1, 2, 2, 3]
        );
        let pocd = |left: f64, slack: f64| libm::log(1.0 - left / slack * (left / slack));
        // One resumes at once; of five others one starts at once, and two in each later wave.
        let wanted =
            pocd(5.0, 100.0) + pocd(10.0, 100.0) + 2.0 * pocd(10.0, 90.0) + 2.0 * pocd(10.0, 80.0);
        let got = waves.ln_pocd(&distribution, [0.5], 5, 100.0);
        assert!((got - wanted).abs() < 1e-14, "{got}, not {wanted}");
        // The tenth wave has no time left.
        assert_eq!(
            waves.ln_pocd(&distribution, [], 22, 100.0),
            f64::NEG_INFINITY
        );
    }

    #[test]
    fn a_sure_clone_leaves_nothing_to_gain() {
        let task = TaskMiss {
            ln_miss_present: -0.5,
            ln_miss_per_clone: LN_IMPOSSIBLE,
            clones: 1,
        };
        assert_eq!(task.ln_pocd(), 0.0);
        assert_eq!(task.gain_of_one_more(), 0.0);
    }
}
