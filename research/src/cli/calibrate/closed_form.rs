//! Formulas of the papers for a job at its submission, for the policies that have one.

use shed_core::estimate::distribution::{Distribution, DistributionKind};
use shed_core::estimate::fit::max_likelihood;
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::estimate::sample::Sample;
use shed_core::policy::Speculation;
use shed_papers::formulas::chronos::{clone_ln_pocd, restart_ln_pocd};
use shed_papers::formulas::srquant::SrQuantJob;
use shed_papers::{
    ChronosClone, ChronosSRestart, ChronosSResume, GivenDistribution, Instants, SrQuant, Terms,
};

use shed_sim::trace::Job;

/// Whether the policy has a closed form.
pub(super) fn exists(policy: &Speculation) -> bool {
    strategy(policy).is_some()
}

/// The PoCD that the policy's closed form gives the job, with the maximum number of clones per
/// task. The distribution is the given one, or the best fit to the job's own times, which no policy
/// knows. None if the job has no deadline or no task.
pub(super) fn pocd(policy: &Speculation, job: &Job) -> Option<f64> {
    let (form, instants, terms) = strategy(policy)?;
    let [stage] = job.stages.as_slice() else {
        return None;
    };
    let deadline = job.deadline?.seconds();
    let times: Vec<f64> = stage.durations.iter().map(|time| time.seconds()).collect();
    let distribution = distribution(&terms.distribution, &times)?;
    let [tau_est, tau_kill] = instants.within(job.deadline?).map(|span| span.seconds());
    let job = SrQuantJob {
        distribution,
        deadline,
        tau_est,
        tau_kill,
        // τ_est·E[1/T | T > D]: how far those are that will be late.
        phi_est: tau_est.min(deadline) / deadline * distribution.beta / (distribution.beta + 1.0),
        tasks: times.len() as u32,
    };
    let extra = terms.max_clones;
    let ln_pocd = match form {
        Form::Clone => clone_ln_pocd(&job, extra),
        Form::Restart => restart_ln_pocd(&job, extra),
        // Its r + 1 attempts are all new, and all clones.
        Form::Resume => job.ln_pocd(extra.saturating_sub(1)),
    };
    Some(libm::exp(ln_pocd))
}

enum Form {
    Clone,
    Restart,
    Resume,
}

fn strategy(policy: &Speculation) -> Option<(Form, Instants, Terms)> {
    if policy.is_none() {
        // A clone's formula without clones.
        let terms = Terms {
            max_clones: 0,
            ..Terms::default()
        };
        return Some((Form::Clone, Instants::default(), terms));
    }
    if let Some(of) = policy.as_rule::<ChronosClone>() {
        return Some((Form::Clone, of.instants, of.terms));
    }
    if let Some(of) = policy.as_rule::<ChronosSRestart>() {
        return Some((Form::Restart, of.instants, of.terms));
    }
    let resuming = policy.as_rule::<ChronosSResume>().map(|of| &of.0);
    let resuming = resuming.or_else(|| policy.as_rule::<SrQuant>());
    resuming.map(|of| (Form::Resume, of.instants, of.terms))
}

/// Parameters that are not given are those of the largest likelihood.
fn distribution(given: &GivenDistribution, times: &[f64]) -> Option<ParetoDistribution> {
    let Distribution::Pareto(fitted) =
        max_likelihood(DistributionKind::Pareto, &Sample::new(times, &[]))?
    else {
        return None;
    };
    let pick = |given: f64, fitted: f64| if given > 0.0 { given } else { fitted };
    Some(ParetoDistribution {
        t_min: pick(given.t_min, fitted.t_min),
        beta: pick(given.beta, fitted.beta),
    })
}

#[cfg(test)]
mod tests {
    use shed_core::time::{Instant, Span};

    use super::*;
    use shed_sim::trace::Stage;

    fn job(times: &[i64]) -> Job {
        let durations = times.iter().map(|time| Span::from_seconds(*time)).collect();
        Job {
            id: "a".into(),
            arrival: Instant(0),
            deadline: Some(Span::from_seconds(200)),
            weight: 1.0,
            class: None,
            usual: None,
            tenant: None,
            expected: None,
            stages: vec![Stage {
                durations,
                ..Stage::default()
            }],
        }
    }

    #[test]
    fn a_job_without_clones_has_the_product_of_its_tasks() {
        // ln(2)/2 is the mean of the logarithms: β = 2/ln 2, and (100/200)^β is e^−2 per task.
        let expected = (1.0 - libm::exp(-2.0)).powi(2);
        let got = pocd(&Speculation::none(), &job(&[100, 200])).unwrap();
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        // Times that do not vary end when they end.
        assert_eq!(pocd(&Speculation::none(), &job(&[100, 100])), Some(1.0));
        assert_eq!(pocd(&Speculation::none(), &job(&[])), None);
    }

    #[test]
    fn more_attempts_raise_the_closed_form_pocd() {
        let of = |text: &str| {
            let order = shed_core::policy::Order::default();
            let policy = shed_papers::registry().parse(text, order).unwrap();
            pocd(&policy.speculation, &job(&[100, 150, 300]))
        };
        let plain = of("hadoop-ns").unwrap();
        for form in ["clone", "s-restart", "s-resume"] {
            let one = of(&format!("chronos-{form}{{max_clones=1}}")).unwrap();
            let two = of(&format!("chronos-{form}{{max_clones=2}}")).unwrap();
            assert!(plain < one && one < two, "{form}: {plain} {one} {two}");
        }
        assert_eq!(of("shed-prime"), None);
    }
}
