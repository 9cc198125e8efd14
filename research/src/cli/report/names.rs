//! Short names for policies, just long enough to distinguish those of one report.

use std::collections::{BTreeMap, BTreeSet};

use shed_core::settings::Parsed;

use super::chart::NAME_MAX;

/// A policy with all its parameters, and the order of first attempts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PolicyKey {
    pub(super) policy: String,
    pub(super) order: String,
}

/// Short names, each with its color and marker.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<PolicyKey, String>);

impl Names {
    /// Of all policies of a report.
    pub(super) fn of(policies: &BTreeSet<PolicyKey>) -> Self {
        let orders: BTreeSet<&str> = policies.iter().map(|key| &*key.order).collect();
        let name = |key: &PolicyKey| {
            let (base, own) = parts(&key.policy);
            let namesakes = policies.iter().map(|other| parts(&other.policy));
            let namesakes: Vec<_> = namesakes.filter(|(other, _)| *other == base).collect();
            let differs = |parameter: &&(&str, &str)| {
                let everywhere =
                    |(_, others): &(&str, Vec<(&str, &str)>)| others.contains(parameter);
                !namesakes.iter().all(everywhere)
            };
            let telling = own.iter().filter(differs);
            let telling: Vec<String> = telling
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let mut name = match telling.is_empty() {
                true => base.to_owned(),
                false => format!("{base} {}", telling.join(" ")),
            };
            // Policies of one kind are then numbered, and the report's last table says which is which.
            if name.chars().count() > NAME_MAX {
                let before = policies.iter().take_while(|other| *other != key);
                let before = before.filter(|other| parts(&other.policy).0 == base);
                name = format!("{base} #{}", before.count() + 1);
            }
            if orders.len() > 1 {
                name.push_str(&format!(" ({})", key.order));
            }
            name
        };
        Self(
            policies
                .iter()
                .map(|key| (key.clone(), name(key)))
                .collect(),
        )
    }

    /// The short name.
    pub(super) fn name<'a>(&'a self, key: &'a PolicyKey) -> &'a str {
        self.0.get(key).map_or(&key.policy, String::as_str)
    }

    /// The same number for the same policy in every figure.
    pub(super) fn rank(&self, key: &PolicyKey) -> usize {
        self.0.keys().position(|other| other == key).unwrap_or(0)
    }

    /// All of them: key and short name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&PolicyKey, &str)> {
        self.0.iter().map(|(key, name)| (key, name.as_str()))
    }
}

/// Name and parameters; a text of another form is a name.
fn parts(policy: &str) -> (&str, Vec<(&str, &str)>) {
    match Parsed::new(policy) {
        Ok(Parsed { name, pairs }) => (name, pairs),
        Err(_) => (policy, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_differs_and_no_more() {
        let key = |policy: &str, order: &str| PolicyKey {
            policy: policy.into(),
            order: order.into(),
        };
        let policies = BTreeSet::from([
            key("hadoop-ns", "lst"),
            key("shed-plus{xi=0.1,joint=off}", "lst"),
            key("shed-plus{xi=0.2,joint=off}", "lst"),
        ]);
        let names = Names::of(&policies);
        let short: Vec<&str> = names.all().map(|(_, name)| name).collect();
        assert_eq!(short, ["hadoop-ns", "shed-plus xi=0.1", "shed-plus xi=0.2"]);
        let policies = BTreeSet::from([
            key("late{a=1,b=2,interval=3,share=4}", "lst"),
            key("late{a=9,b=8,interval=7,share=6}", "lst"),
        ]);
        let names = Names::of(&policies);
        let short: Vec<&str> = names.all().map(|(_, name)| name).collect();
        assert_eq!(short, ["late #1", "late #2"]);
        let policies = BTreeSet::from([key("a{x=1}", "lst"), key("a{x=1}", "edf")]);
        let names = Names::of(&policies);
        assert_eq!(names.name(&key("a{x=1}", "edf")), "a (edf)");
    }
}
