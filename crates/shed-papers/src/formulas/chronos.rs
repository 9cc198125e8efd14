//! Chronos' three strategies in closed form, as Shed and LASER compare themselves with them.
//!
//! Slots are unlimited. The third strategy, S-Resume, is SRQuant: [`SrQuantJob::ln_pocd`] and
//! [`SrQuantJob::machine_time`]. All three share SRQuant's utility,
//! [`Price::utility`](crate::formulas::srquant::Price::utility).

use crate::formulas::srquant::SrQuantJob;
use shed_core::estimate::pareto::{ParetoDistribution, ln_miss};
use shed_core::estimate::pocd::{ln_job_pocd_uniform, ln_task_pocd};

/// Clone: r extra attempts from zero at submission. ln of the PoCD,
/// `N·ln(1 − (t_min/D)^(β(r+1)))`: Shed Theorem 1.
pub fn clone_ln_pocd(job: &SrQuantJob, extra: u32) -> f64 {
    let attempt = ln_miss(
        0.0,
        job.distribution.t_min,
        job.deadline,
        job.distribution.beta,
    );
    ln_job_pocd_uniform(attempt, extra.saturating_add(1), job.tasks)
}

/// Clone: E(T) = N·(r·τ_kill + t_min + t_min/(β(r+1) − 1)), the clones being killed at
/// `tau_kill`. ∞ when β(r+1) ≤ 1.
pub fn clone_machine_time(job: &SrQuantJob, extra: u32) -> f64 {
    let ParetoDistribution { t_min, beta } = job.distribution;
    let extra = f64::from(extra);
    let shape = beta * (extra + 1.0);
    if shape <= 1.0 {
        return f64::INFINITY;
    }
    f64::from(job.tasks) * (extra * job.tau_kill + t_min + t_min / (shape - 1.0))
}

/// S-Restart: the original continues, and a late task gets r extra attempts from zero at `tau_est`.
/// ln of the PoCD, `N·ln(1 − t_min^(β(r+1)) / (D^β·(D−τ_est)^(βr)))`.
pub fn restart_ln_pocd(job: &SrQuantJob, extra: u32) -> f64 {
    if job.tasks == 0 {
        return 0.0;
    }
    let ParetoDistribution { t_min, beta } = job.distribution;
    let original = ln_miss(0.0, t_min, job.deadline, beta);
    let restarted = if extra == 0 {
        0.0
    } else {
        f64::from(extra) * ln_miss(0.0, t_min, job.deadline - job.tau_est, beta)
    };
    f64::from(job.tasks) * ln_task_pocd(original + restarted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> SrQuantJob {
        SrQuantJob {
            distribution: ParetoDistribution {
                t_min: 60.0,
                beta: 1.7,
            },
            deadline: 250.0,
            tau_est: 120.0,
            tau_kill: 200.0,
            phi_est: 0.4,
            tasks: 10,
        }
    }

    #[test]
    fn resuming_and_cloning_at_submission_beat_restarting() {
        for extra in 1..5 {
            assert!(job().ln_pocd(extra) > restart_ln_pocd(&job(), extra));
            assert!(clone_ln_pocd(&job(), extra) > restart_ln_pocd(&job(), extra));
        }
    }

    #[test]
    fn without_extra_attempts_a_restart_is_one_plain_attempt() {
        let mut late = job();
        late.tau_est = 250.0;
        assert_eq!(restart_ln_pocd(&late, 0), clone_ln_pocd(&late, 0));
    }

    #[test]
    fn the_machine_time_of_clones_is_infinite_where_their_mean_is() {
        let mut heavy = job();
        heavy.distribution.beta = 0.5;
        assert!(clone_machine_time(&heavy, 1).is_infinite());
        assert!(clone_machine_time(&heavy, 2).is_finite());
    }
}
