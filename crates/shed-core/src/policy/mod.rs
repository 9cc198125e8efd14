//! The policy of an operator: in which order first attempts are served and who gets clones.
//!
//! Written as text such as `shed-plus{xi=0.1,theta=0.05,max_clones=5,order=edf,law=best}`; order
//! and law of attempt times ([`LawChoice`]) combine with every policy. Each policy is
//! a file with its parameters, their defaults from its paper, and its rule. What all of them
//! share: [`settings`](crate::settings) reads and writes the text, `trigger` says when a job is looked at, `keep`
//! which attempts die, `clones` weighs and grants clones by the rules of the job's user,
//! `redundancy` clones tasks from their start, `judgement` has Chronos' two instants.
//!
//! The crate's documentation has them in a table.
//!
//! For all of them first attempts go before clones, a clone makes way for a waiting first attempt,
//! and the first attempt to end wins: these are rules of the product, not of the papers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::decide::Pass;
use crate::estimate::fit::LawChoice;
use crate::estimate::progress::optimization_interval;
use crate::settings::{self, Parsed, Setting};
use crate::time::Span;

mod chronos_clone;
mod chronos_s_restart;
mod chronos_s_resume;
mod clones;
mod dolly;
mod dollymp;
mod ese;
mod given;
mod hadoop_ns;
mod hadoop_s;
mod hopper;
mod judgement;
mod keep;
pub mod laser;
mod late;
mod mantri;
mod order;
mod redundancy;
mod s_resume_event;
mod sca;
mod shed;
pub(crate) mod shed_plus;
mod shed_prime;
mod srquant;
mod trigger;

pub use crate::settings::ParsePolicyError;
pub use chronos_clone::ChronosClone;
pub use chronos_s_restart::ChronosSRestart;
pub use chronos_s_resume::ChronosSResume;
pub use dolly::Dolly;
pub use dollymp::DollyMp;
pub use ese::Ese;
pub use given::GivenLaw;
pub use hadoop_s::HadoopS;
pub use hopper::Hopper;
pub use judgement::{Instants, Terms};
pub use laser::Laser;
pub use late::Late;
pub use mantri::Mantri;
pub use order::Order;
pub use s_resume_event::SResumeEvent;
pub use sca::Sca;
pub use shed::Shed;
pub use shed_plus::turn::Turn;
pub use shed_plus::{Mode, ShedPlus, Utility, Variant};
pub use shed_prime::{Hedge, ShedPrime};
pub use srquant::SrQuant;

use laser::{Networks, Source};

/// t_avg as long as none was measured, for policies that have no parameter of their own for it.
const LAUNCH_OVERHEAD: Span = Span::from_seconds(3);

/// Ten times what a cluster of 10 000 jobs with 100 stragglers each asks for; on one core some
/// seconds at most.
const WORK_MAX: u64 = 10_000_000;

/// In how long half is forgotten of how slow a node was seen. Once a slow node's attempts are
/// pruned nothing runs there that could tell, and it looks as free as a healthy one.
const SLOW_HALF_LIFE: Span = Span::from_seconds(120);

/// After a clone was disrupted its task gets no other for this share of the job's time, within these
/// bounds.
const CLONE_REST_SHARE: f64 = 0.05;
const CLONE_REST_MIN: Span = Span::from_seconds(10);
const CLONE_REST_MAX: Span = Span::from_seconds(60);

/// An attempt that is preempted has run for so many launch overheads at least: two jobs can't drive
/// each other out without ever doing work.
pub(crate) const PREEMPTION_LAUNCHES: f64 = 3.0;

/// Everything that the operator's user may choose about decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Who is first when capacity is short.
    pub order: Order,
    /// Who gets clones.
    pub speculation: Speculation,
    /// The law of attempt times that every policy reads.
    pub law: LawChoice,
    /// λ: the share of the cluster that attempts may use, above 0 and at most 1.
    pub capacity_share: f64,
    /// First attempts of each tenant that may wait as pods beyond capacity, so that autoscalers see
    /// demand.
    pub surge_max: u32,
    /// Steps that a policy about clones may take in one pass: tasks weighed and clones handed out.
    /// A job that does not fit into what is left is cut short.
    pub work_max: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: Order::default(),
            speculation: Speculation::default(),
            law: LawChoice::default(),
            capacity_share: 1.0,
            surge_max: 1,
            work_max: WORK_MAX,
        }
    }
}

impl Policy {
    /// The same policy, deciding by trained networks.
    ///
    /// # Errors
    /// If it is another than `laser`.
    pub fn with_networks(mut self, networks: Arc<Networks>) -> Result<Self, ParsePolicyError> {
        match &mut self.speculation {
            Speculation::Laser(laser) => laser.source = Source::Networks(networks),
            other => {
                let name = other.name();
                let fault =
                    format!("`{name}` knows no networks: use `laser`, which decides by them");
                return Err(ParsePolicyError::new(fault));
            }
        }
        Ok(self)
    }

    /// The networks that it decides by, if there are any.
    #[must_use]
    pub fn networks(&self) -> Option<&Arc<Networks>> {
        match &self.speculation {
            Speculation::Laser(laser) => match &laser.source {
                Source::Networks(networks) => Some(networks),
                Source::Law | Source::Drawn(_) => None,
            },
            _ => None,
        }
    }

    /// The policy that `text` says, with `order` unless the text has an `order=` of its own;
    /// all else as by default.
    ///
    /// # Errors
    /// The text is no policy: the message lists the names, or the parameters of the one named.
    pub fn parse(text: &str, order: Order) -> Result<Self, ParsePolicyError> {
        let mut parsed = Parsed::new(text).map_err(|fault| names_after(&fault))?;
        let order = match parsed.take("order") {
            Some(text) => text.parse()?,
            None => order,
        };
        let law = match parsed.take("law") {
            Some(text) => read_law(text)?,
            None => LawChoice::default(),
        };
        Ok(Self {
            order,
            law,
            speculation: Speculation::from_parsed(&parsed)?,
            ..Self::default()
        })
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, Order::default())
    }
}

fn read_law(text: &str) -> Result<LawChoice, ParsePolicyError> {
    let mut all = LawChoice::ALL.into_iter();
    let fault = || {
        let labels = LawChoice::ALL.map(LawChoice::label).join(", ");
        ParsePolicyError::new(format!("`{text}` is no law: use one of {labels}"))
    };
    all.find(|law| law.label() == text).ok_or_else(fault)
}

/// Speculation, order and any other law than the usual; what is left has settings of its own.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.speculation.parts();
        parts.push(format!("order={}", self.order));
        if self.law != LawChoice::default() {
            parts.push(format!("law={}", self.law.label()));
        }
        settings::write(f, self.speculation.name(), parts)
    }
}

/// What a policy about clones does in a run of `decide`.
pub(crate) trait Speculate {
    /// The name in the text, as in the papers.
    fn name(&self) -> &'static str;

    /// Its parameters.
    fn settings(&mut self) -> Vec<Setting<'_>>;

    /// Most live clones of a task beside its first attempt; 0: it launches none.
    fn max_clones(&self) -> u32;

    /// Whether it gives up a task's only attempt for one launched anew.
    fn restarts(&self) -> bool {
        false
    }

    /// Whether it lets a task's only attempt make way for another job's.
    fn preempts(&self) -> bool {
        false
    }

    /// t_avg as long as none was measured.
    fn launch_overhead(&self) -> Span {
        LAUNCH_OVERHEAD
    }

    /// How much speaks for an attempt being as fast as its job's median before it has shown
    /// anything, in tasks; 0: each is judged by its own reports alone, as printed.
    fn rate_prior(&self) -> f64 {
        0.0
    }

    /// How long a task gets no clone after one of its clones was disrupted: the pod that took its place
    /// needs it. By default about θ (eq. 17 of Shed+), within bounds that suit policies that look more
    /// often. `limit`: from the job's submission to its deadline, if it has one; `overhead`: t_avg.
    fn clone_rest(&self, limit: Option<Span>, overhead: f64) -> Span {
        let limit = limit.map_or(0.0, Span::seconds);
        let theta = optimization_interval(limit, overhead, CLONE_REST_SHARE);
        Span::from_seconds_f64(theta).clamp(CLONE_REST_MIN, CLONE_REST_MAX)
    }

    /// In how long half is forgotten of how slow a node was seen; above 0.
    fn slow_half_life(&self) -> Span {
        SLOW_HALF_LIFE
    }

    /// Before first attempts are served: which jobs are due, which attempts are superfluous.
    fn before_admission(&self, _pass: &mut Pass<'_>) {}

    /// After they are served and the jobs' PoCDs are known: clones from what is left.
    fn after_admission(&self, _pass: &mut Pass<'_>) {}
}

macro_rules! registry {
    ($($(#[$doc:meta])* $variant:ident($rule:ty),)*) => {
        /// Who gets clones.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Speculation {
            /// Hadoop-NS: nobody.
            HadoopNs,
            $($(#[$doc])* $variant($rule),)*
        }

        impl Speculation {
            /// Every policy with its defaults.
            #[must_use]
            pub fn all() -> Vec<Self> {
                vec![Self::HadoopNs, $(Self::$variant(<$rule>::default()),)*]
            }

            pub(crate) fn rule(&self) -> &dyn Speculate {
                match self {
                    Self::HadoopNs => &hadoop_ns::HadoopNs,
                    $(Self::$variant(rule) => rule,)*
                }
            }

            fn settings(&mut self) -> Vec<Setting<'_>> {
                match self {
                    Self::HadoopNs => Vec::new(),
                    $(Self::$variant(rule) => rule.settings(),)*
                }
            }
        }
    };
}

registry! {
    /// The task that would end latest, round by round, as Hadoop 2 and 3 do.
    HadoopS(HadoopS),
    /// The slow task that needs longest.
    Late(Late),
    /// Tasks of which one more attempt saves machine time.
    Mantri(Mantri),
    /// All tasks of small jobs, from their submission on.
    Dolly(Dolly),
    /// Late tasks within the job's share of slots.
    Hopper(Hopper),
    /// All tasks, from their submission on, as many as the utility says.
    ChronosClone(ChronosClone),
    /// Stragglers at τ_est, from zero, beside the original.
    ChronosSRestart(ChronosSRestart),
    /// Stragglers at τ_est, resumed, instead of the original.
    ChronosSResume(ChronosSResume),
    /// The same, as \[L\] has it.
    SrQuant(SrQuant),
    /// The same, by predictions.
    Laser(Laser),
    /// All tasks of new jobs while there is room for all, by a convex programme.
    Sca(Sca),
    /// Tasks that need long beyond the mean, and all tasks of small new jobs.
    Ese(Ese),
    /// All tasks with what first attempts leave, small jobs first.
    DollyMp(DollyMp),
    /// All tasks of a job alike, the lowest PoCD first, at each arrival.
    Shed(Shed),
    /// Stragglers, by the Shed+ optimizer.
    ShedPlus(ShedPlus),
    /// Every late task, until it is all but sure to be in time.
    SResumeEvent(SResumeEvent),
    /// What gains most per slot, on events.
    ShedPrime(ShedPrime),
}

impl Default for Speculation {
    fn default() -> Self {
        Self::ShedPrime(ShedPrime::default())
    }
}

impl Speculation {
    /// The name in the text.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.rule().name()
    }

    /// Most live clones of a task beside its first attempt; 0: the policy launches none.
    #[must_use]
    pub fn max_clones(&self) -> u32 {
        self.rule().max_clones()
    }

    /// Whether the policy gives up a task's only attempt for one launched anew.
    #[must_use]
    pub fn restarts(&self) -> bool {
        self.rule().restarts()
    }

    /// Whether the policy lets a task's only attempt make way for another job's.
    #[must_use]
    pub fn preempts(&self) -> bool {
        self.rule().preempts()
    }

    fn from_parsed(parsed: &Parsed<'_>) -> Result<Self, ParsePolicyError> {
        let found = Self::all()
            .into_iter()
            .find(|policy| policy.name() == parsed.name);
        let fault = || names_after(&format!("`{}` is no policy", parsed.name));
        let mut policy = found.ok_or_else(fault)?;
        let read = parsed.read_into(policy.settings());
        read.map_err(|fault| {
            let help = settings::help(parsed.name, &policy.settings());
            ParsePolicyError::new(format!("{fault}; {help}; each takes order={}", Order::HELP))
        })?;
        Ok(policy)
    }

    fn parts(&self) -> Vec<String> {
        let mut copy = self.clone();
        copy.settings().iter().map(Setting::to_string).collect()
    }
}

fn names_after(fault: &str) -> ParsePolicyError {
    let names: Vec<&str> = Speculation::all().iter().map(Speculation::name).collect();
    let names = names.join(", ");
    ParsePolicyError::new(format!(
        "{fault}; the policies are {names}, with parameters as in `shed-plus{{xi=0.1,order=edf}}`"
    ))
}

impl FromStr for Speculation {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = Parsed::new(text).map_err(|fault| names_after(&fault))?;
        Self::from_parsed(&parsed)
    }
}

impl fmt::Display for Speculation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        settings::write(f, self.name(), self.parts())
    }
}

#[cfg(test)]
mod tests;
