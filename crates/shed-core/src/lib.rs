//! Scheduling core of shed, a pure function from facts to decisions. It also documents the field: deadlines,
//! stragglers and clones of batch jobs.
//!
//! No Kubernetes, no async, no clock, no files, no environment, no logging, no hash order, and
//! transcendental functions from `libm` alone: a run is bit-identical on every machine.
//!
//! # Words
//!
//! A *job* has N *tasks*; an *attempt* is one run of a task. A task's first attempt is its *original*. An attempt
//! that is launched while another of the task lives is a *clone*; one that is launched because none lives is a
//! *retry*. A *straggler* is a task that is expected to end after the deadline. The *PoCD* of a job is its
//! probability of completion before its deadline.
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | t_min, β | s, – | scale and shape of the Pareto distribution of attempt durations |
//! | φ | 0…1 | progress |
//! | τ, D | s | time since the job's submission; its deadline |
//! | r | clones | clones of a task; r + 1 attempts |
//! | λ·m, κ, ω | slots | slots that attempts may use; slots left for clones; clones handed out |
//! | MAX | clones | the most clones of a task |
//! | ξ, θ, t_avg | –, s, s | job progress at the optimizer's first run; time between runs; mean launch overhead |
//! | δ (or ε) | – | accepted probability of a miss, where a policy has one |
//! | h(r), ρ | – | speedup of r copies; weight of a task time's deviation (DollyMP) |
//!
//! Papers: **\[S\]** Shed (ICC 2018), **\[S+\]** Shed+ (TNSM 17(3), 2020), **\[L\]** LASER and SRQuant
//! (ICCCN 2017), **\[D\]** DollyMP (ICPP 2022), **\[SCA\]** SCA and ESE (Infocom 2015).
//!
//! # From facts to a plan
//!
//! 1. [`snapshot`] has all the facts for a decision at one instant. Both executors, the operator and the simulator,
//!    build it.
//! 2. [`settle`](settle::settle) derives the actions that one job's facts alone require: a winner, a count, an end.
//! 3. [`decide`](decide::decide) makes the decisions that need the whole cluster: the order of service, clones and
//!    prunes. Its memory from pass to pass is a [`memory::Memory`].
//! 4. [`plan`] is the result: actions, each with its reason, and a report with figures.
//! 5. [`validate`] checks snapshots and [`plan_check`] plans. [`guard`] handles an invalid snapshot or a broken
//!    policy.
//!
//! # From reports to a probability
//!
//! Attempt durations have a *distribution* ([`estimate`]): [Pareto](estimate::pareto), as in the papers,
//! [log-normal](estimate::log_normal), [Weibull](estimate::weibull) or [empirical](estimate::empirical). It is fitted
//! by likelihood with running attempts as censored ([`estimate::fit`], [`estimate::pareto_fit`]). It is shrunk towards the
//! times of earlier jobs of its class ([`estimate::history`]).
//!
//! An attempt's remaining time follows from its progress (\[S+\] eqs. 14 to 16, [`estimate::progress`]) or, if it is
//! silent, from its age. [`estimate::pocd`] combines attempts to tasks and tasks to a job (\[S\] Theorems 1 and 2,
//! \[S+\] Theorem 2), in logarithms. It also returns the increase by one more clone, the figure that optimizers and
//! explanations share. [`estimate::feasibility`] inverts it: it returns the deadline that would reach a PoCD.
//!
//! # Policies
//!
//! A policy is written as text, `shed-prime{max_clones=3,order=drf}`; parameters and defaults are those of each type.
//! [`policy::PolicyRule`] is the contract of a policy, and [`policy::Registry`] finds one by its name.
//!
//! | policy | which tasks get clones, and when | begins | source | where |
//! |---|---|---|---|---|
//! | `hadoop-ns` | none | – | baseline | [`policy::HadoopNs`] |
//! | `shed-prime` | tasks whose miss clones lower most per slot, on events; lone attempts are restarted | resume | `docs/research/shed-prime.md` | [`policy::ShedPrime`] |
//!
//! The crate `shed-papers` has the policies of the papers, with their optimizers. Any policy can be combined with any order of first
//! attempts ([`policy::Order`]): `lst`, `edf`, `fifo`, `capacity`, `drf`, `carbyne`, `tetris`, `srpt`, `svf`,
//! `dollymp`.

pub mod capacity;
pub mod decide;
pub mod estimate;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod float;
pub mod guard;
pub mod ids;
pub mod index_set;
pub mod memory;
pub mod plan;
pub mod plan_check;
pub mod policy;
pub mod resources;
pub mod risk;
pub mod round;
pub mod settings;
pub mod settle;
pub mod snapshot;
pub mod tenant_fairness;
pub mod time;
pub mod validate;
pub mod workflow;
