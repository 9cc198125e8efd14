//! The rules that a job has from batch/v1 Job.

use shed_core::index_set::IndexSet;
use shed_core::snapshot::{EndRules, SuccessRule};

use super::{InvalidSpec, within};
use crate::api::{
    DeadlineJobSpec, ExitCodeOperator, OnExitCodes, PodFailureRule, SuccessPolicyRule,
};

/// Rules that end the job before all its tasks have ended.
pub(super) fn end_rules(spec: &DeadlineJobSpec, completions: u32) -> Result<EndRules, InvalidSpec> {
    let limit = |field, value: Option<i32>, high| {
        value.map(|value| within(field, value, 0, high)).transpose()
    };
    let rules = spec.success_policy.iter().flat_map(|policy| &policy.rules);
    Ok(EndRules {
        backoff_limit: limit("backoffLimit", spec.backoff_limit, i32::MAX)?,
        failed_tasks_max: limit("maxFailedIndexes", spec.max_failed_indexes, 100_000)?,
        success: rules
            .enumerate()
            .map(|(at, rule)| success_rule(at, rule, completions))
            .collect::<Result<_, _>>()?,
    })
}

/// A rule that no outcome could meet would let its job run for nothing.
fn success_rule(
    at: usize,
    rule: &SuccessPolicyRule,
    completions: u32,
) -> Result<SuccessRule, InvalidSpec> {
    let field = |name: &str| format!("successPolicy.rules[{at}].{name}");
    let indexes = rule
        .succeeded_indexes
        .as_deref()
        .map(|text| index_set(&field("succeededIndexes"), text, completions))
        .transpose()?;
    let most = indexes.as_ref().map_or(completions, IndexSet::len);
    let count = rule.succeeded_count.map(u32::try_from).transpose();
    let count = count.ok().filter(|count| {
        count.is_none_or(|count| (1..=most).contains(&count))
            && (count.is_some() || indexes.is_some())
    });
    let count = count.ok_or_else(|| InvalidSpec::SuccessCount {
        field: field("succeededCount"),
        most,
    })?;
    Ok(SuccessRule { indexes, count })
}

/// Tasks that are not to be run.
pub(super) fn skipped(
    spec: &DeadlineJobSpec,
    completions: u32,
) -> Result<Option<IndexSet>, InvalidSpec> {
    let Some(text) = &spec.indexes else {
        return Ok(None);
    };
    let chosen = index_set("indexes", text, completions)?;
    Ok(Some(chosen.complement(completions)))
}

fn index_set(field: &str, text: &str, completions: u32) -> Result<IndexSet, InvalidSpec> {
    let error = |problem: String| InvalidSpec::Indexes {
        field: field.to_owned(),
        problem,
    };
    let set: IndexSet = text
        .parse()
        .map_err(|part: shed_core::index_set::ParseIndexSetError| error(part.to_string()))?;
    if set.is_empty() {
        return Err(error("it contains no index".to_owned()));
    }
    if set.below(completions) != set {
        let last = completions.saturating_sub(1);
        return Err(error(format!(
            "`{text}` exceeds {last}, the index of the last task"
        )));
    }
    Ok(set)
}

/// Two rules contradict each other if the later one can never hold, because an earlier one with
/// another action always matches first.
pub(super) fn failure_rules(spec: &DeadlineJobSpec) -> Result<&[PodFailureRule], InvalidSpec> {
    let rules = spec.pod_failure_policy.as_ref();
    let rules = rules.map_or(&[][..], |policy| &policy.rules);
    for (later, rule) in rules.iter().enumerate() {
        if rule.on_exit_codes.is_some() == rule.on_pod_conditions.is_some() {
            return Err(InvalidSpec::FailureRule { at: later });
        }
        // A Job's rules are the apiserver's to judge, which lets this pass.
        if spec.is_companion() {
            continue;
        }
        let mut before = rules.iter().take(later);
        let covers = |other: &PodFailureRule| other.action != rule.action && covers(other, rule);
        if let Some(earlier) = before.position(covers) {
            return Err(InvalidSpec::Contradiction { earlier, later });
        }
    }
    Ok(rules)
}

/// Whether every failure that `later` matches is matched by `earlier` too.
fn covers(earlier: &PodFailureRule, later: &PodFailureRule) -> bool {
    match (&earlier.on_exit_codes, &later.on_exit_codes) {
        (Some(earlier), Some(later)) => covers_codes(earlier, later),
        (None, None) => {
            let mut wanted = later.on_pod_conditions.iter().flatten();
            let earlier: Vec<_> = earlier.on_pod_conditions.iter().flatten().collect();
            wanted.all(|condition| earlier.contains(&condition))
        }
        _ => false,
    }
}

fn covers_codes(earlier: &OnExitCodes, later: &OnExitCodes) -> bool {
    let name = earlier.container_name.as_ref();
    let same_container = name.is_none() || name == later.container_name.as_ref();
    let listed = |code: &i32| earlier.values.contains(code);
    let codes = match (earlier.operator, later.operator) {
        (ExitCodeOperator::In, ExitCodeOperator::In) => later.values.iter().all(listed),
        (ExitCodeOperator::NotIn, ExitCodeOperator::In) => !later.values.iter().any(listed),
        (ExitCodeOperator::NotIn, ExitCodeOperator::NotIn) => earlier
            .values
            .iter()
            .all(|code| later.values.contains(code)),
        (ExitCodeOperator::In, ExitCodeOperator::NotIn) => false,
    };
    same_container && codes
}

#[cfg(test)]
mod tests {
    use crate::fixtures::job;
    use crate::validate::validate;

    #[track_caller]
    fn refused(change: &str, words: &str) {
        let message = validate(&job(change)).unwrap_err().to_string();
        assert!(message.contains(words), "{change}: {message}");
    }

    #[test]
    fn indexes_are_tasks_of_the_job() {
        let skipped = validate(&job("indexes: '0,2'")).unwrap().skipped;
        assert_eq!(skipped.unwrap().to_string(), "1,3");
        refused("indexes: '4'", "spec.indexes: `4` exceeds 3");
        refused("indexes: 'a-b'", "spec.indexes");
        refused("indexes: ''", "spec.indexes: it contains no index");
    }

    /// As many single indexes as fit into the field.
    #[test]
    fn sparse_indexes_are_complemented_range_by_range() {
        let chosen: Vec<String> = (0..11_000).map(|n| (n * 9).to_string()).collect();
        let change = format!("{{completions: 100000, indexes: '{}'}}", chosen.join(","));
        let skipped = validate(&job(&change)).unwrap().skipped.unwrap();
        assert_eq!(skipped.len(), 89_000);
        assert_eq!(skipped.ranges().count(), 11_000);
    }

    #[test]
    fn a_success_policy_that_cannot_be_met_is_refused() {
        let policy = |rule: &str| format!("successPolicy: {{rules: [{rule}]}}");
        assert!(validate(&job(&policy("{succeededIndexes: 0-2, succeededCount: 3}"))).is_ok());
        let beyond = policy("{succeededIndexes: 0-2, succeededCount: 4}");
        refused(&beyond, "spec.successPolicy.rules[0].succeededCount");
        refused(&policy("{succeededCount: 5}"), "succeededCount");
        refused(&policy("{succeededIndexes: '9'}"), "succeededIndexes");
        refused(&policy("{}"), "succeededCount");
    }

    #[test]
    fn rules_that_contradict_each_other_are_refused() {
        let policy = |first: &str, second: &str| {
            format!(
                "podFailurePolicy: {{rules: [{{action: Ignore, {first}}}, {{action: FailJob, {second}}}]}}"
            )
        };
        let codes = |operator: &str, values: &str| {
            format!("onExitCodes: {{operator: {operator}, values: {values}}}")
        };
        for (first, second) in [
            (codes("In", "[1, 2]"), codes("In", "[2]")),
            (codes("NotIn", "[1]"), codes("In", "[2]")),
            (codes("NotIn", "[1]"), codes("NotIn", "[1, 2]")),
        ] {
            refused(&policy(&first, &second), "rules[1]");
        }
        for (first, second) in [
            (codes("In", "[1]"), codes("In", "[1, 2]")),
            (codes("NotIn", "[2]"), codes("In", "[2]")),
            (codes("In", "[1]"), codes("NotIn", "[1]")),
        ] {
            assert!(validate(&job(&policy(&first, &second))).is_ok());
        }
        let condition = "onPodConditions: [{type: DisruptionTarget, status: 'True'}]";
        refused(&policy(condition, condition), "rules[1]");
    }
}
