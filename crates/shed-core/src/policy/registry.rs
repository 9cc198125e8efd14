//! Policies by name.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::estimate::fit::DistributionChoice;
use crate::policy::contract::{AnyRule, PolicyRule};
use crate::policy::{HadoopNs, Order, ParsePolicyError, Policy, ShedPrime};
use crate::settings::{self, Parsed};

/// The policy about clones, with its parameters.
#[derive(Debug, Clone)]
pub struct Speculation(Arc<dyn AnyRule>);

impl PartialEq for Speculation {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Default for Speculation {
    fn default() -> Self {
        Self::new(ShedPrime::default())
    }
}

impl Speculation {
    /// The choice of this policy.
    pub fn new(rule: impl PolicyRule) -> Self {
        Self(Arc::new(rule))
    }

    /// No clones at all.
    pub fn none() -> Self {
        Self::new(HadoopNs)
    }

    /// Whether no clones are launched at all.
    pub fn is_none(&self) -> bool {
        self.as_rule::<HadoopNs>().is_some()
    }

    /// The policy, if it is of that type.
    pub fn as_rule<R: PolicyRule>(&self) -> Option<&R> {
        self.0.as_any().downcast_ref()
    }

    /// The name in the text.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Most live clones of a task next to its first attempt; 0: the policy launches none.
    pub fn max_clones(&self) -> u32 {
        self.0.max_clones()
    }

    /// Whether each pass looks at every job.
    pub fn looks_at_all(&self) -> bool {
        self.0.looks_at_all()
    }

    /// Whether the policy gives up a task's only attempt and has the task launched again.
    pub fn restarts(&self) -> bool {
        self.0.restarts()
    }

    /// Whether the policy lets a task's only attempt be preempted for another job.
    pub fn preempts(&self) -> bool {
        self.0.preempts()
    }

    /// Whether resumed clones replace a task's first attempt as soon as one of them has started.
    pub fn hands_over(&self) -> bool {
        self.0.hands_over()
    }

    /// Whether the policy decides by files.
    pub fn reads_files(&self) -> bool {
        self.0.reads_files()
    }

    /// The files that the policy decides by: name and text.
    pub fn files(&self) -> BTreeMap<String, String> {
        self.0.files()
    }

    /// The same policy, deciding by these files: name and text.
    ///
    /// # Errors
    /// If the policy has no use for one of them, or its text is not valid.
    pub fn with_files(&self, files: &BTreeMap<String, String>) -> Result<Self, ParsePolicyError> {
        let with = self.0.with_files(files);
        with.map(Self).map_err(ParsePolicyError::new)
    }

    pub(crate) fn rule(&self) -> &dyn AnyRule {
        &*self.0
    }
}

impl fmt::Display for Speculation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        settings::write(f, self.name(), self.0.parts())
    }
}

impl FromStr for Speculation {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Registry::default().speculation(text)
    }
}

/// The policies that can be named, each with its defaults.
#[derive(Debug, Clone)]
pub struct Registry(Vec<Speculation>);

impl Default for Registry {
    /// The policies of this crate.
    fn default() -> Self {
        Self(Vec::new()).with(HadoopNs).with(ShedPrime::default())
    }
}

impl Registry {
    /// The registry with one more policy.
    pub fn with(mut self, rule: impl PolicyRule) -> Self {
        self.0.push(Speculation::new(rule));
        self
    }

    /// All policies of the registry.
    pub fn all(&self) -> &[Speculation] {
        &self.0
    }

    /// The policy that `text` describes, with `order` unless the text has an `order=` of its own. All other settings
    /// are the defaults.
    ///
    /// # Errors
    /// If there is no such policy: the message lists the names, or the parameters of the one named.
    pub fn parse(&self, text: &str, order: Order) -> Result<Policy, ParsePolicyError> {
        let mut parsed = Parsed::new(text).map_err(|fault| self.names_after(&fault))?;
        let order = match parsed.take("order") {
            Some(text) => text.parse()?,
            None => order,
        };
        let distribution = match parsed.take("distribution") {
            Some(text) => read_distribution(text)?,
            None => DistributionChoice::default(),
        };
        Ok(Policy {
            order,
            distribution,
            speculation: self.named(&parsed)?,
            ..Policy::default()
        })
    }

    /// The policy about clones that `text` describes.
    ///
    /// # Errors
    /// As [`Registry::parse`].
    pub fn speculation(&self, text: &str) -> Result<Speculation, ParsePolicyError> {
        let parsed = Parsed::new(text).map_err(|fault| self.names_after(&fault))?;
        self.named(&parsed)
    }

    fn named(&self, parsed: &Parsed<'_>) -> Result<Speculation, ParsePolicyError> {
        let found = self.0.iter().find(|policy| policy.name() == parsed.name);
        let fault = || self.names_after(&format!("unknown policy `{}`", parsed.name));
        let found = found.ok_or_else(fault)?;
        found.0.with(parsed).map(Speculation).map_err(|fault| {
            let help = found.0.help();
            let distributions = DistributionChoice::ALL
                .map(DistributionChoice::label)
                .join(", ");
            let order = Order::HELP;
            ParsePolicyError::new(format!(
                "{fault}; {help}; each takes order={order}, and distribution={distributions}"
            ))
        })
    }

    fn names_after(&self, fault: &str) -> ParsePolicyError {
        let names: Vec<&str> = self.0.iter().map(Speculation::name).collect();
        let names = names.join(", ");
        ParsePolicyError::new(format!(
            "{fault}; the policies are {names}, with parameters as in `shed-prime{{max_clones=3,order=edf}}`"
        ))
    }
}

fn read_distribution(text: &str) -> Result<DistributionChoice, ParsePolicyError> {
    let mut all = DistributionChoice::ALL.into_iter();
    let fault = || {
        let labels = DistributionChoice::ALL
            .map(DistributionChoice::label)
            .join(", ");
        ParsePolicyError::new(format!(
            "unknown distribution `{text}`: use one of {labels}"
        ))
    };
    all.find(|distribution| distribution.label() == text)
        .ok_or_else(fault)
}
