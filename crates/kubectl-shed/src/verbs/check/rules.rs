//! The CEL rules of the CRD, evaluated as for an object that is created. Pure.

use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use serde_json::Value;

/// How a rule asks whether the object existed before. kube-cel has no optional values, and an object of a
/// manifest counts as new.
const EXISTED: &str = "oldSelf.hasValue()";

pub struct Rules {
    /// With rules about a new object alone.
    schema: Value,
    compiled: CompiledSchema,
}

impl Rules {
    pub fn new(mut schema: Value) -> Self {
        settle_creation(&mut schema);
        Self {
            compiled: compile_schema(&schema),
            schema,
        }
    }

    pub fn spec(&self) -> &Value {
        &self.schema["properties"]["spec"]
    }

    /// The object with the defaults of the schema.
    pub fn defaulted(&self, object: &Value) -> Value {
        kube_cel::apply_defaults(&self.schema, object)
    }

    /// Messages of the rules that the object violates. Rules about a change do not apply. Rules that cannot be
    /// evaluated are left out if the object has another shape than its schema, because that is then the cause.
    pub fn violations(&self, object: &Value, has_shape: bool) -> Vec<String> {
        let judged = Validator::new().validate_compiled(&self.compiled, object, None);
        let Err(errors) = judged else {
            return Vec::new();
        };
        let is_reported = |kind: &ErrorKind| has_shape || *kind == ErrorKind::ValidationFailure;
        let errors = errors.into_iter().filter(|error| is_reported(&error.kind));
        let words = errors.map(|error| match error.kind {
            // The CRD's messages name the field and the fix.
            ErrorKind::ValidationFailure => error.message,
            _ => format!(
                "{}: the rule `{}` of the CRD could not be evaluated: {}; use kubectl apply --dry-run=server",
                error.field_path, error.rule, error.message
            ),
        });
        words.collect()
    }
}

/// The object without fields that are null, which the apiserver drops before it sets defaults.
pub fn without_nulls(object: &Value) -> Value {
    match object {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| (name.clone(), without_nulls(value)));
            fields.collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Makes rules that also apply at creation into rules about the object alone.
fn settle_creation(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(settle_creation),
        Value::Object(fields) => {
            if fields.get("optionalOldSelf") == Some(&Value::Bool(true))
                && let Some(Value::String(rule)) = fields.get_mut("rule")
            {
                *rule = rule.replace(EXISTED, "false");
                fields.remove("optionalOldSelf");
            }
            fields.values_mut().for_each(settle_creation);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::super::judge::crd_schema;
    use super::*;

    /// All rules of a schema.
    fn rules_of(schema: &Value, found: &mut Vec<Value>) {
        if let Some(rules) = schema["x-kubernetes-validations"].as_array() {
            found.extend(rules.iter().cloned());
        }
        let parts = match schema {
            Value::Array(parts) => parts.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => vec![],
        };
        parts.into_iter().for_each(|part| rules_of(part, found));
    }

    fn job(change: Value) -> Value {
        let mut job = json!({
            "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "metadata": {"name": "nightly"},
            "spec": {
                "deadline": {"within": "10m"}, "completions": 4, "idempotency": "Safe",
                "template": {"spec": {"containers": [{"name": "task", "image": "task"}]}},
            },
        });
        for (name, value) in change.as_object().unwrap() {
            job["spec"][name] = value.clone();
        }
        job
    }

    /// Compiled once for all tests.
    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new(crd_schema()));

    fn said(change: Value) -> Vec<String> {
        RULES.violations(&without_nulls(&job(change)), true)
    }

    #[test]
    fn every_rule_of_the_crd_compiles() {
        let mut rules = Vec::new();
        rules_of(&RULES.schema, &mut rules);
        assert!(rules.len() > 30, "{} rules", rules.len());
        for rule in rules {
            let text = rule["rule"].as_str().unwrap();
            kube_cel::cel::Program::compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let is_new = rule["optionalOldSelf"] != Value::Bool(true);
            assert!(is_new, "{text}: still depends on the object before");
        }
    }

    #[test]
    fn a_valid_job_violates_nothing() {
        assert_eq!(said(json!({})), [""; 0]);
        let all = json!({
            "parallelism": 2, "resume": "Checkpoint", "preemption": "WhenCheckpointed", "targetPoCD": 0.95,
            "progress": {"file": {}}, "expectedTaskDuration": {"p50": "1m", "p90": "2m"},
            "speculation": {"budget": 0.2}, "indexes": "0-3", "maxFailedIndexes": 1,
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]},
        });
        assert_eq!(said(all), [""; 0]);
    }

    /// Violates each rule once, so that each is really evaluated.
    #[track_caller]
    fn each_is_said(violations: impl IntoIterator<Item = (Value, &'static str)>) {
        for (change, words) in violations {
            let said = said(change.clone());
            let found = said.iter().any(|message| message.contains(words));
            assert!(found, "{change:.200}: {said:?}");
            assert!(
                said.iter()
                    .all(|message| !message.contains("could not be evaluated")),
                "{said:?}"
            );
        }
    }

    #[test]
    fn rules_about_the_deadline_of_a_new_job_can_be_violated() {
        each_is_said([
            (
                json!({"deadline": {}}),
                "spec.deadline needs exactly one of within",
            ),
            (
                json!({"deadline": {"within": "0s"}}),
                "spec.deadline.within must be longer than 0s",
            ),
            (
                json!({"deadline": {"clock": {"time": "25:00", "timeZone": "Etc/UTC"}}}),
                "spec.deadline.clock.time must be HH:MM",
            ),
            (
                json!({"deadline": {"history": {"quantile": "p95", "factor": "200"}}}),
                "spec.deadline.history.factor must be",
            ),
            (
                json!({"deadline": {"clockStart": "Start", "clock": {"time": "06:00", "timeZone": "Etc/UTC"}}}),
                "spec.deadline.clockStart: Start needs",
            ),
            (json!({"deadline": null}), "spec.deadline: Required value"),
        ]);
    }

    #[test]
    fn rules_about_the_tasks_of_a_new_job_can_be_violated() {
        each_is_said([
            (
                json!({"parallelism": 5}),
                "spec.parallelism must not be above spec.completions",
            ),
            (
                json!({"resume": "Checkpoint"}),
                "spec.resume: Checkpoint needs spec.progress",
            ),
            (
                json!({"resume": "Range"}),
                "spec.resume: Range needs spec.progress",
            ),
            (
                json!({"resume": "Range", "progress": {"file": {}}, "idempotency": "None"}),
                "spec.resume: Range needs spec.idempotency: Safe",
            ),
            (
                json!({"preemption": "WhenCheckpointed"}),
                "spec.preemption: WhenCheckpointed needs",
            ),
            (
                json!({"idempotency": "Fenced"}),
                "spec.idempotency: Fenced needs an agent",
            ),
            (
                json!({"progress": {}}),
                "spec.progress needs exactly one of file",
            ),
            (
                json!({"maxFailedIndexes": 5}),
                "spec.maxFailedIndexes must not be above",
            ),
            (
                json!({"targetPoCD": 0.0}),
                "spec.targetPoCD must be above 0",
            ),
            (
                json!({"speculation": {"budget": -1.0}}),
                "spec.speculation.budget must be between 0 and 20",
            ),
            (
                json!({"expectedTaskDuration": {"p50": "0s"}}),
                "spec.expectedTaskDuration.p50 must be longer",
            ),
            (
                json!({"expectedTaskDuration": {"p50": "2m", "p90": "1m"}}),
                "spec.expectedTaskDuration.p90 must not be shorter",
            ),
        ]);
    }

    #[test]
    fn rules_about_the_template_of_a_new_job_can_be_violated() {
        let labels = json!({"shed.dev/task": "1"});
        each_is_said([
            (
                json!({"template": {"spec": {"containers": []}}}),
                "spec.template.spec.containers must hold",
            ),
            (
                json!({"template": {"spec": {"restartPolicy": "Always", "containers": [{"name": "a"}]}}}),
                "spec.template.spec.restartPolicy must be Never",
            ),
            (
                json!({"progress": {"file": {}},
                    "template": {"spec": {"hostNetwork": true, "containers": [{"name": "a"}]}}}),
                "spec.progress does not work with spec.template.spec.hostNetwork",
            ),
            (
                json!({"template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a"}]}}}),
                "spec.template.metadata.labels must not hold",
            ),
            (
                json!({"template": {"metadata": {"annotations": labels}, "spec": {"containers": [{"name": "a"}]}}}),
                "spec.template.metadata.annotations must not hold",
            ),
        ]);
    }

    #[test]
    fn violations_of_index_and_exit_code_rules_are_reported() {
        let exit_codes = |operator: &str, values: Value| {
            json!({"podFailurePolicy": {"rules": [{"action": "Ignore",
                "onExitCodes": {"operator": operator, "values": values}}]}})
        };
        each_is_said([
            (
                json!({"indexes": "0".repeat(262_145)}),
                "spec.indexes and spec.successPolicy.rules[*].succeededIndexes together exceed",
            ),
            (exit_codes("In", json!([0])), "0"),
        ]);
    }
}
