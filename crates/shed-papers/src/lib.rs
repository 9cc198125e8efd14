//! The policies and formulas of the papers, on the policy contract of shed-core: one file per policy,
//! each with the defaults of its paper and its equation numbers.
//!
//! [`registry`] adds them to the policies of the product, so that each can be named in a policy
//! text. [`formulas`] has the papers' computations on plain numbers that policies call. [`optimize`] allocates free
//! capacity to clones: [`optimize::greedy`] is \[S+\] Algorithm 1 as printed and its exact relatives,
//! [`optimize::alpha_fair`] the family of utilities between total and max-min.
//!
//! | policy | which tasks get clones, and when | begins | source |
//! |---|---|---|---|
//! | [`HadoopS`] | per round the task that would end latest beyond a new attempt | zero | Hadoop 2 and 3 |
//! | [`Late`] | tasks of the lowest progress rates that need longest, on fast nodes | zero | LATE |
//! | [`Mantri`] | tasks for which one more attempt probably saves machine time | zero | Mantri |
//! | [`Dolly`] | all tasks of small jobs, at submission, until a straggler is improbable | zero | Dolly |
//! | [`Hopper`] | within shares by virtual size 2/β · remaining tasks | zero | Hopper |
//! | [`ChronosClone`] | every task, at submission, by PoCD against machine time | zero | Chronos |
//! | [`ChronosSRestart`] | stragglers at τ_est | zero | Chronos |
//! | [`ChronosSResume`], [`SrQuant`] | stragglers at τ_est; their originals stop | resume | Chronos, \[L\] Algorithm 1 |
//! | [`Laser`] | as [`SrQuant`], by predicted times | resume | \[L\] Algorithm 2 |
//! | [`ShedPlus`] | stragglers of the job with the lowest PoCD, at ξ and every θ | resume | \[S+\] Algorithm 1 |
//! | [`Shed`] | all tasks of the job with the lowest PoCD, at arrivals | resume | \[S\] Algorithm 1 |
//! | [`SResumeEvent`] | late tasks, at each report, until a miss is improbable | resume | the simple rule to beat |
//! | [`Sca`] | tasks of new jobs, by a convex program of flow time and machine time | zero | \[SCA\] P2 |
//! | [`Ese`] | tasks with more than σ mean times left; tasks of small new jobs | zero | \[SCA\] section 5 |
//! | [`EdfAdmission`] | none: EDF behind a guarantee test, by known durations | - | Liu and Layland; Ramamritham and Stankovic; ElasticFlow |
//! | [`Preempting`] | none: EDF or least slack, with preemption from checkpoints | - | Liu and Layland |
//! | [`DollyMp`] | second, then third copies, by levels, when no first attempt fits | zero | \[D\] Algorithm 2 |

use shed_core::policy::Registry;

mod chronos_clone;
mod chronos_s_restart;
mod chronos_s_resume;
mod dolly;
mod dollymp;
mod edf_admission;
mod ese;
pub mod formulas;
mod given_distribution;
mod hadoop_s;
mod hopper;
mod judgement;
pub mod laser;
mod late;
mod mantri;
pub mod optimize;
mod preempting;
mod preemption;
mod prune_due;
mod redundancy;
mod s_resume_event;
mod sca;
mod shed;
mod shed_plus;
mod srquant;
pub mod state;

pub use chronos_clone::ChronosClone;
pub use chronos_s_restart::ChronosSRestart;
pub use chronos_s_resume::ChronosSResume;
pub use dolly::Dolly;
pub use dollymp::DollyMp;
pub use edf_admission::{Admitted, EdfAdmission};
pub use ese::Ese;
pub use given_distribution::GivenDistribution;
pub use hadoop_s::HadoopS;
pub use hopper::Hopper;
pub use judgement::{Instants, Terms};
pub use laser::Laser;
pub use late::Late;
pub use mantri::Mantri;
pub use preemption::{Preempting, ServiceOrder};
pub use s_resume_event::SResumeEvent;
pub use sca::Sca;
pub use shed::Shed;
pub use shed_plus::{Keep, ShedPlus, Utility};
pub use srquant::SrQuant;

/// The policies of the product and of the papers.
pub fn registry() -> Registry {
    Registry::default()
        .with(ShedPlus::default())
        .with(HadoopS::default())
        .with(Late::default())
        .with(Mantri::default())
        .with(Dolly::default())
        .with(Hopper::default())
        .with(ChronosClone::default())
        .with(ChronosSRestart::default())
        .with(ChronosSResume::default())
        .with(SrQuant::default())
        .with(Laser::default())
        .with(Sca::default())
        .with(Ese::default())
        .with(DollyMp::default())
        .with(Shed::default())
        .with(SResumeEvent::default())
        .with(EdfAdmission)
        .with(Preempting::default())
}
