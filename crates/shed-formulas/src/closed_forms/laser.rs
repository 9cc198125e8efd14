//! SRQuant (ICCCN 2017).

use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::estimate::pocd::probability;
use shed_papers::formulas::srquant::{Price, SlowMean, SrQuantJob};

use super::ClosedForm;

/// The number of clones that SRQuant chooses, with its PoCD and machine time. The tolerances are half of the last digit
/// that is specified.
pub(super) fn best_extra() -> Vec<ClosedForm> {
    let mut forms = Vec::new();
    let beta = 1.7;
    // Name, D, τ_est, τ_kill; r*, its R and E in s, R without speculation.
    for (name, times, values) in [
        ("L-1", [250.0, 120.0, 200.0], [2.0, 0.997, 1223.0, 0.396]),
        ("L-2", [180.0, 80.0, 160.0], [3.0, 0.995, 1371.0, 0.187]),
    ] {
        let [deadline, tau_est, tau_kill] = times;
        let job = SrQuantJob {
            distribution: ParetoDistribution { t_min: 60.0, beta },
            deadline,
            tau_est,
            tau_kill,
            // E[τ_est/T | T > D].
            phi_est: tau_est * beta / ((beta + 1.0) * deadline),
            tasks: 10,
        };
        let extra = job.best_extra(&Price::default(), 5);
        let ours = [
            f64::from(extra),
            probability(job.ln_pocd(extra)),
            job.machine_time(extra, SlowMean::Printed),
            libm::pow(1.0 - job.p_late(), 10.0),
        ];
        let whats = ["r*", "R(r*)", "E(r*), s", "R without speculation"];
        let half_digit = [0.0, 5e-4, 0.5, 5e-4];
        for at in 0..4 {
            let what = format!("{name}, D {deadline} s: {}", whats[at]);
            let form = ClosedForm::specified(what, values[at], ours[at], half_digit[at]);
            forms.push(form);
        }
    }
    forms
}
