//! The failure of an attempt's pod, and the matching rule of the user's `podFailurePolicy`.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use shed_core::snapshot::FailureRule;

use crate::api::{ExitCodeOperator, OnExitCodes, OnPodCondition, PodFailureAction, PodFailureRule};

/// Input of the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Containers that ended with another code than 0, init containers included.
    exits: Vec<(String, i32)>,
    /// Conditions of the pod: type and status.
    conditions: Vec<(String, String)>,
}

/// The first rule that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The matched rule's action.
    pub action: PodFailureAction,
    /// Its place in the list, from 0.
    pub position: usize,
    /// The matched exit code or condition, for people.
    pub what: String,
}

impl Match {
    /// Whether the failure was done to the pod and is not to count.
    pub fn is_ignored(&self) -> bool {
        self.action == PodFailureAction::Ignore
    }

    /// Effect of the failure, in addition to the count.
    pub fn rule(&self) -> Option<FailureRule> {
        match self.action {
            PodFailureAction::FailJob => Some(FailureRule::FailJob),
            PodFailureAction::FailIndex => Some(FailureRule::FailTask),
            PodFailureAction::Ignore | PodFailureAction::Count => None,
        }
    }
}

impl Failure {
    /// Facts about a pod that failed.
    pub fn of(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.into_iter().flatten();
        let init = status.init_container_statuses.into_iter().flatten();
        let conditions = status.conditions.into_iter().flatten();
        Self {
            exits: containers.chain(init).filter_map(exit).collect(),
            conditions: conditions
                .map(|condition| (condition.type_, condition.status))
                .collect(),
        }
    }

    /// The first of these rules that matches.
    pub fn first_match(&self, rules: &[PodFailureRule]) -> Option<Match> {
        rules.iter().enumerate().find_map(|(position, rule)| {
            let by_code = rule.on_exit_codes.as_ref().and_then(|on| self.exit(on));
            let by_condition = || {
                let wanted = rule.on_pod_conditions.iter().flatten();
                wanted.into_iter().find_map(|on| self.condition(on))
            };
            Some(Match {
                action: rule.action,
                position,
                what: by_code.or_else(by_condition)?,
            })
        })
    }

    fn exit(&self, on: &OnExitCodes) -> Option<String> {
        let named = |name: &str| on.container_name.as_deref().is_none_or(|own| own == name);
        let (name, code) = self.exits.iter().find(|(name, code)| {
            let listed = on.values.contains(code);
            named(name) && listed == (on.operator == ExitCodeOperator::In)
        })?;
        Some(format!("container {name} exited with code {code}"))
    }

    fn condition(&self, on: &OnPodCondition) -> Option<String> {
        let (type_, status) = self
            .conditions
            .iter()
            .find(|(type_, status)| *type_ == on.type_ && status == on.status.text())?;
        Some(format!("the pod has the condition {type_}={status}"))
    }
}

fn exit(status: ContainerStatus) -> Option<(String, i32)> {
    let code = status.state?.terminated?.exit_code;
    (code != 0).then_some((status.name, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: &str) -> Failure {
        let yaml = format!("status: {status}");
        Failure::of(&serde_saphyr::from_str(&yaml).unwrap())
    }

    fn ended(code: i32) -> Failure {
        pod(&format!(
            "{{containerStatuses: [{{name: task, state: {{terminated: {{exitCode: {code}}}}}}}, \
             {{name: other, state: {{terminated: {{exitCode: 0}}}}}}]}}"
        ))
    }

    fn matched(failure: &Failure, rules: &str) -> Option<(PodFailureAction, usize)> {
        let rules: Vec<PodFailureRule> = serde_saphyr::from_str(rules).unwrap();
        let found = failure.first_match(&rules)?;
        Some((found.action, found.position))
    }

    #[test]
    fn the_first_rule_that_matches_holds() {
        let rules = "[{action: Count, onExitCodes: {operator: In, values: [2]}}, \
                      {action: FailJob, onExitCodes: {operator: In, values: [2, 42]}}]";
        assert_eq!(
            matched(&ended(2), rules),
            Some((PodFailureAction::Count, 0))
        );
        assert_eq!(
            matched(&ended(42), rules),
            Some((PodFailureAction::FailJob, 1))
        );
        assert_eq!(matched(&ended(1), rules), None);
    }

    #[test]
    fn a_container_that_ended_with_0_matches_no_rule_about_codes() {
        let rule = "[{action: FailIndex, onExitCodes: {operator: NotIn, values: [7]}}]";
        assert_eq!(
            matched(&ended(3), rule),
            Some((PodFailureAction::FailIndex, 0))
        );
        assert_eq!(matched(&ended(7), rule), None);
        assert_eq!(matched(&ended(0), rule), None);
        let of_other = "[{action: FailJob, onExitCodes: {containerName: other, operator: NotIn, values: [7]}}]";
        assert_eq!(matched(&ended(3), of_other), None);
    }

    #[test]
    fn conditions_match_by_type_and_status() {
        let pod = pod("{conditions: [{type: DisruptionTarget, status: 'True'}]}");
        let rule = |status: &str| {
            format!(
                "[{{action: Ignore, onPodConditions: [{{type: DisruptionTarget, status: '{status}'}}]}}]"
            )
        };
        assert_eq!(
            matched(&pod, &rule("True")),
            Some((PodFailureAction::Ignore, 0))
        );
        assert_eq!(matched(&pod, &rule("False")), None);
    }
}
