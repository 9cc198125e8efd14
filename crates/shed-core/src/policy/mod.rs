//! The policy of an operator: in which order first attempts are served and who gets clones.
//!
//! A policy is written as text, for example:
//!
//! ```text
//! shed-prime{max_clones=3,order=edf}
//! ```
//!
//! The order and the distribution of attempt durations ([`DistributionChoice`]) combine with every policy about clones.
//! [`PolicyRule`] is the contract of such a policy. [`ShedPrime`] and [`HadoopNs`] are here, and a [`Registry`] takes
//! more. The policies share two modules: [`prune`] stops superfluous attempts,
//! [`round::clones`](crate::round::clones) weighs and grants clones by the rules of the job's user.
//!
//! For all of them first attempts go before clones, a waiting first attempt evicts a clone, and the first attempt to
//! end wins. These are rules of the product, not of the papers.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::estimate::fit::DistributionChoice;
use crate::settings;

mod contract;
mod hadoop_ns;
mod order_setting;
mod pass_view;
pub mod prune;
mod registry;
mod shed_prime;

pub use crate::memory::PolicyState;
pub use crate::settings::ParsePolicyError;
pub(crate) use contract::KeptBeliefs;
pub use contract::{Arranged, Comparison, Judgement, PolicyRule, Recall, Remembered, Summary};
pub use hadoop_ns::HadoopNs;
pub use order_setting::Order;
pub use pass_view::Desk;
pub use registry::{Registry, Speculation};
pub use shed_prime::{Hedge, ShedPrime};

/// Ten times the requests of a cluster of 10 000 jobs with 100 stragglers each; a few seconds at most on one core.
const WORK_MAX: u64 = 10_000_000;

/// A preempted attempt has run for at least this many launch overheads, so that two jobs cannot preempt each other
/// without ever doing work.
pub(crate) const PREEMPTION_LAUNCHES: f64 = 3.0;

/// The settings of the operator's user about decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The order of service when capacity is short.
    pub order: Order,
    /// The policy about clones.
    pub speculation: Speculation,
    /// The distribution of attempt durations that every policy reads.
    pub distribution: DistributionChoice,
    /// λ: the share of the cluster that attempts may use, above 0 and at most 1.
    pub capacity_share: f64,
    /// First attempts of each tenant that may wait as pods beyond capacity, so that autoscalers see demand.
    pub surge_max: u32,
    /// Steps that a policy about clones may take in one pass: tasks weighed and clones handed out. A job that does
    /// not fit into the remaining budget is cut short.
    pub work_max: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: Order::default(),
            speculation: Speculation::default(),
            distribution: DistributionChoice::default(),
            capacity_share: 1.0,
            surge_max: 1,
            work_max: WORK_MAX,
        }
    }
}

impl Policy {
    /// The policy of the product that `text` describes, with `order` unless the text has an `order=` of its own. All
    /// other settings are the defaults. A [`Registry`] reads more policies.
    ///
    /// # Errors
    /// If there is no such policy: the message lists the names, or the parameters of the one named.
    pub fn parse(text: &str, order: Order) -> Result<Self, ParsePolicyError> {
        Registry::default().parse(text, order)
    }

    /// The same policy, deciding by these files: name and text.
    ///
    /// # Errors
    /// If the policy has no use for one of them, or its text is not valid.
    pub fn with_files(
        mut self,
        files: &BTreeMap<String, String>,
    ) -> Result<Self, ParsePolicyError> {
        self.speculation = self.speculation.with_files(files)?;
        Ok(self)
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, Order::default())
    }
}

/// Speculation, order and the distribution unless it is the default. The other settings have their own text.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.speculation.rule().parts();
        parts.push(format!("order={}", self.order));
        if self.distribution != DistributionChoice::default() {
            parts.push(format!("distribution={}", self.distribution.label()));
        }
        settings::write(f, self.speculation.name(), parts)
    }
}

#[cfg(test)]
mod tests;
