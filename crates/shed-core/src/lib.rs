//! Pure scheduling core of shed: facts in, decisions out; and a book of the field that it
//! comes from: deadlines, stragglers and clones of batch jobs.
//!
//! No Kubernetes, no async, no clock, no files, no environment, no logging, no hash order, and
//! transcendental functions from `libm` alone: a run is bit-identical on every machine.
//!
//! # Words
//!
//! A *job* has N *tasks*; an *attempt* is one run of a task. A task's first attempt is its
//! *original*; one that is launched while another of the task lives is a *clone*, one that is
//! launched because none lives a *retry*. A *straggler* is a task that is expected to end after
//! the deadline. The *PoCD* of a job is its probability of completion before its deadline.
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | t_min, β | s, – | scale and shape of the Pareto law of attempt times |
//! | φ | 0…1 | progress |
//! | τ, D | s | time since the job's submission; its deadline |
//! | r | clones | clones of a task; r + 1 attempts |
//! | λ·m, κ, ω | slots | what attempts may use; what is left of it for clones; clones handed out |
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
//! 1. [`snapshot`] is everything that a decision may look at, at one instant; both executors, the
//!    operator and the simulator, build it.
//! 2. [`settle`](settle::settle) says what one job's facts alone force, at once: a winner, a count, an end.
//! 3. [`decide`](decide::decide) says what only the whole cluster's view decides: who goes first, who gets a
//!    clone, which attempt is pruned. What it remembers from pass to pass is a [`memory::Memory`].
//! 4. [`plan`] is the answer: actions, each with its reason, and a report with figures; [`explain`] puts it
//!    into words for one job.
//! 5. [`validate`] is what no snapshot may hold, [`plan_check`] what must hold of any plan, and [`guard`]
//!    what executors do when a snapshot or a policy is broken.
//!
//! # From reports to a probability
//!
//! How long attempts take is a *law* ([`estimate::law`]): [Pareto](estimate::pareto), as in the papers,
//! [log-normal](estimate::log_normal), [Weibull](estimate::weibull) or [empirical](estimate::empirical), fitted by
//! likelihood with running attempts as censored ([`estimate::fit`], [`estimate::shape`]) or from mean and
//! deviation ([`estimate::speedup`]), and shrunk towards what jobs of its class have shown
//! ([`estimate::history`]). What remains of an attempt follows from its progress (\[S+\] eqs. 14
//! to 16, [`estimate::progress`]) or, where it is silent, from its age. [`estimate::pocd`] puts attempts
//! together to tasks and tasks to a job (\[S\] Theorems 1 and 2, \[S+\] Theorem 2), in logarithms, with what
//! one more clone would add: the figure that optimizers and explanations share. [`estimate::feasibility`]
//! turns it round: which deadline would reach a PoCD.
//!
//! # From probabilities to clones
//!
//! [`optimize::greedy`] is \[S+\] Algorithm 1 as printed and its exact relatives; [`optimize::job_level`] that of
//! \[S\]; [`optimize::alpha_fair`] the family of utilities between total and max-min; [`optimize::incremental`]
//! redoes only what a change moves.
//!
//! # Policies
//!
//! Written as text, `shed-plus{xi=0.1,order=drf}`; parameters and defaults are those of each type.
//! [`policy::PolicyRule`] is the contract of a policy, [`policy::Registry`] finds one by its name.
//!
//! | policy | which tasks get clones, and when | begins | source | where |
//! |---|---|---|---|---|
//! | `hadoop-ns` | none | – | baseline | [`policy::HadoopNs`] |
//! | `shed-plus` | stragglers of the job with the lowest PoCD, at ξ and every θ | resume | \[S+\] Algorithm 1 | [`policy::ShedPlus`] |
//! | `shed-prime` | tasks whose miss clones lower most per slot, on events; lone attempts are restarted | resume | `docs/shed-prime.md` | [`policy::ShedPrime`] |
//!
//! The crate `shed-papers` has the other policies of the papers. Any policy goes with any order of
//! first attempts ([`policy::Order`]): `lst`, `edf`, `fifo`, `capacity`, `drf`, `tetris`, `carbyne`,
//! `srpt`, `svf`, `dollymp`.

pub mod capacity;
pub mod decide;
pub mod estimate;
pub mod explain;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod float;
pub mod guard;
pub mod ids;
pub mod index_set;
pub mod memory;
pub mod optimize;
pub mod plan;
pub mod plan_check;
pub mod policy;
pub mod resources;
pub mod round;
pub mod settings;
pub mod settle;
pub mod snapshot;
pub mod time;
pub mod validate;
