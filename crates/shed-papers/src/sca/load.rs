//! The measured load of recent arrivals against the cutoff λ^U (SCA/ESE (8)), which selects SCA or ESE.

use shed_core::memory::Arrival;
use shed_core::policy::Desk;
use shed_core::round::JobView;

use super::Sca;
use crate::formulas::copies::fastest_mean;
use crate::formulas::load::Service;
use crate::given_distribution::GivenDistribution;

/// Notes the jobs whose times are known for the first time.
pub(super) fn note_arrivals(desk: &mut Desk<'_, '_, Sca>, given: &GivenDistribution) {
    let arrivals: Vec<(usize, Arrival)> = (0..desk.jobs().len())
        .filter_map(|at| {
            let state = desk.job(at)?;
            if desk.arrivals().has(&state.job.key) || state.is_held_up(desk.now()) {
                return None;
            }
            let slots = f64::from(desk.capacity().times_usable(at));
            Some((at, arrival(state, given, slots)?))
        })
        .collect();
    let (jobs, known) = desk.jobs_and_arrivals();
    for (at, arrival) in arrivals {
        if let Some(state) = jobs.get(at) {
            known.note(&state.job.key, &state.job.tenant, arrival);
        }
    }
}

/// The demand of a job on a cluster with this number of slots.
fn arrival(state: &JobView<'_>, given: &GivenDistribution, slots: f64) -> Option<Arrival> {
    let rules = &state.job.rules;
    let mean = fastest_mean(&given.of(state)?, 1.0);
    let volume = f64::from(rules.completions) * mean / slots;
    (volume.is_finite() && volume > 0.0).then_some(Arrival {
        submitted: state.job.submitted,
        volume,
    })
}

/// Whether the load is above the cutoff: cloning every task would lengthen jobs.
pub(super) fn is_heavy(desk: &Desk<'_, '_, Sca>, given: &GivenDistribution) -> bool {
    let load = load(desk);
    let cutoff = mean_shape(desk, given).and_then(|alpha| {
        let service = Service {
            alpha,
            second_moment: None,
        };
        service.cutoff_load()
    });
    load.zip(cutoff)
        .is_some_and(|(load, cutoff)| load >= cutoff)
}

/// ω = λ·E\[m\]·E\[s\]/M: what the arrivals after the first demand of the cluster, over the time since the first.
/// Unknown before the second.
fn load(desk: &Desk<'_, '_, Sca>) -> Option<f64> {
    let first = desk.arrivals().first()?;
    let later = desk.arrivals().iter().map(|(_, arrival)| arrival);
    let later = later.filter(|arrival| arrival.submitted > first);
    let volume: f64 = later.map(|arrival| arrival.volume).sum();
    let seconds = desk.now().since(first).seconds();
    (volume > 0.0 && seconds > 0.0).then(|| volume / seconds)
}

/// The mean shape α of the present jobs' times.
fn mean_shape(desk: &Desk<'_, '_, Sca>, given: &GivenDistribution) -> Option<f64> {
    let shapes = desk.jobs().iter().filter_map(|state| given.of(state));
    let (sum, count) = shapes.fold((0.0, 0.0), |(sum, count), it| (sum + it.beta, count + 1.0));
    (count > 0.0).then(|| sum / count)
}
