//! The annotations that make a job a stage of a workflow's run. DeadlineJobs and batch/v1 Jobs have the same. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shed_core::time::Instant;

use crate::api::{
    ANNOTATION_WORKFLOW, ANNOTATION_WORKFLOW_CLASS, ANNOTATION_WORKFLOW_DEADLINE,
    ANNOTATION_WORKFLOW_LAST, ANNOTATION_WORKFLOW_START, WORKFLOW_VALUE_MAX,
};
use crate::clock;
use crate::validate::{DeadlineRule, deadline_text, rule_of};

/// The run of a workflow that a job is a stage of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The name of the run.
    pub run: Arc<str>,
    /// The class of the run, without the namespace.
    pub class: Arc<str>,
    /// When the run must be complete.
    pub deadline: Option<RunDeadline>,
    /// When the run began, if its user says so.
    pub start: Option<Instant>,
    /// Whether the job's stage is the last one.
    pub is_last: bool,
}

/// When a run must be complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDeadline {
    text: Arc<str>,
    rule: DeadlineRule,
}

/// An annotation of a workflow that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {key}: {problem}")]
pub struct WorkflowFault {
    /// The annotation.
    pub key: &'static str,
    /// The fault and the fix.
    pub problem: String,
}

fn fault(key: &'static str, problem: impl Into<String>) -> WorkflowFault {
    WorkflowFault {
        key,
        problem: problem.into(),
    }
}

impl Workflow {
    /// Reads the annotations of a job; absent if it belongs to no run.
    pub fn read(
        annotations: Option<&BTreeMap<String, String>>,
    ) -> Result<Option<Self>, WorkflowFault> {
        let value = |key: &str| annotations?.get(key).map(|text| text.trim());
        let Some(run) = value(ANNOTATION_WORKFLOW) else {
            let others = [
                ANNOTATION_WORKFLOW_DEADLINE,
                ANNOTATION_WORKFLOW_CLASS,
                ANNOTATION_WORKFLOW_START,
                ANNOTATION_WORKFLOW_LAST,
            ];
            let alone = others.into_iter().find(|key| value(key).is_some());
            let needs = "needs shed.dev/workflow: add it with the name of the run";
            return alone.map_or(Ok(None), |key| Err(fault(key, needs)));
        };
        let name = |key, text| match is_name(text) {
            true => Ok(Arc::from(text)),
            false => Err(fault(
                key,
                format!(
                    "invalid name `{text}`: use 1 to {WORKFLOW_VALUE_MAX} letters, digits and `-_.:+`"
                ),
            )),
        };
        let run: Arc<str> = name(ANNOTATION_WORKFLOW, run)?;
        let class = match value(ANNOTATION_WORKFLOW_CLASS) {
            Some(class) => name(ANNOTATION_WORKFLOW_CLASS, class)?,
            None => class_of(&run).into(),
        };
        let deadline = value(ANNOTATION_WORKFLOW_DEADLINE).map(RunDeadline::read);
        Ok(Some(Self {
            run,
            class,
            deadline: deadline.transpose()?,
            start: value(ANNOTATION_WORKFLOW_START).map(start).transpose()?,
            is_last: value(ANNOTATION_WORKFLOW_LAST).map_or(Ok(false), is_last)?,
        }))
    }

    /// When the run began at the latest, by a job that was created then.
    pub fn began(&self, created: Instant) -> Instant {
        self.start.unwrap_or(created).min(created)
    }

    /// The same run for the companion of a Job that was created then: the companion itself is created later.
    pub fn annotations_of_companion(
        &self,
        job: &BTreeMap<String, String>,
        created: Option<Instant>,
    ) -> BTreeMap<String, String> {
        let own = crate::api::WORKFLOW_ANNOTATIONS.iter();
        let own = own.filter_map(|key| job.get_key_value(*key));
        let mut own: BTreeMap<String, String> = own
            .map(|(key, value)| (key.clone(), value.trim().to_owned()))
            .collect();
        if let Some(created) = created {
            let start = clock::rfc3339(self.began(created));
            own.insert(ANNOTATION_WORKFLOW_START.to_owned(), start);
        }
        own
    }
}

/// The class of a run that names none: its name before its last `-`.
fn class_of(run: &str) -> &str {
    let before = run.rsplit_once('-').map(|(before, _)| before);
    before.filter(|name| !name.is_empty()).unwrap_or(run)
}

/// `#` must not be in a name: the history marks earlier runs of a name with it.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    (1..=WORKFLOW_VALUE_MAX).contains(&text.len()) && text.bytes().all(is_part)
}

fn start(text: &str) -> Result<Instant, WorkflowFault> {
    let at: Option<jiff::Timestamp> = text.parse().ok();
    let at = at.filter(|at| *at >= jiff::Timestamp::UNIX_EPOCH);
    let wrong = || {
        let fix = "use an instant such as 2030-01-31T08:00:00Z";
        fault(
            ANNOTATION_WORKFLOW_START,
            format!("invalid value `{text}`: {fix}"),
        )
    };
    at.map(|at| clock::instant(&Time(at))).ok_or_else(wrong)
}

fn is_last(text: &str) -> Result<bool, WorkflowFault> {
    text.parse().map_err(|_| {
        let problem = format!("invalid value `{text}`: use \"true\" or \"false\"");
        fault(ANNOTATION_WORKFLOW_LAST, problem)
    })
}

impl RunDeadline {
    fn read(text: &str) -> Result<Self, WorkflowFault> {
        let wrong = |problem| fault(ANNOTATION_WORKFLOW_DEADLINE, problem);
        let deadline = deadline_text::read_of_run(text).map_err(wrong)?;
        let rule = rule_of(&deadline).map_err(|invalid| wrong(invalid.to_string()))?;
        Ok(Self {
            text: text.into(),
            rule,
        })
    }

    /// The instant for a run that began at `start`.
    pub fn instant(&self, start: Instant) -> Option<Instant> {
        self.rule.computed(start, Some(start))
    }

    /// As its user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::validate::validate;

    fn read(yaml: &str) -> Result<Option<Workflow>, String> {
        let annotations: BTreeMap<String, String> = serde_saphyr::from_str(yaml).unwrap();
        Workflow::read(Some(&annotations)).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_run_has_a_class_a_deadline_and_a_start() {
        let run = "{shed.dev/workflow: ' nightly-20300131T0000 ', shed.dev/workflow-deadline: 4h,
            shed.dev/workflow-start: '1970-01-01T00:00:05Z', shed.dev/workflow-last: 'true'}";
        let run = read(run).unwrap().unwrap();
        assert_eq!(
            (&*run.run, &*run.class),
            ("nightly-20300131T0000", "nightly")
        );
        assert!(run.is_last);
        let due = run.deadline.as_ref().unwrap();
        assert_eq!(
            due.instant(Instant(5000)),
            Some(Instant(4 * 3_600_000 + 5000))
        );
        assert_eq!(run.began(Instant(9000)), Instant(5000));
        assert_eq!(
            run.began(Instant(4000)),
            Instant(4000),
            "a start that is too late"
        );
        for (name, class) in [("etl", "etl"), ("-1", "-1"), ("a-b-7", "a-b")] {
            let yaml = format!("{{shed.dev/workflow: '{name}'}}");
            assert_eq!(&*read(&yaml).unwrap().unwrap().class, class);
        }
        let named = "{shed.dev/workflow: 4f3c, shed.dev/workflow-class: etl}";
        assert_eq!(&*read(named).unwrap().unwrap().class, "etl");
        assert_eq!(read("{shed.dev/deadline: 5m}"), Ok(None));
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name_with_the_fix() {
        let long = format!("{{shed.dev/workflow: {}}}", "a".repeat(254));
        for (yaml, words) in [
            (
                "{shed.dev/workflow: ''}",
                "shed.dev/workflow: invalid name ``: use 1 to 253",
            ),
            ("{shed.dev/workflow: 'a#1'}", "letters, digits and `-_.:+`"),
            (&*long, "use 1 to 253 letters"),
            (
                "{shed.dev/workflow-deadline: 4h}",
                "shed.dev/workflow-deadline: needs shed.dev/workflow: add it",
            ),
            (
                "{shed.dev/workflow-last: 'true'}",
                "shed.dev/workflow-last: needs shed.dev/workflow",
            ),
            (
                "{shed.dev/workflow: a, shed.dev/workflow-deadline: soon}",
                "shed.dev/workflow-deadline: invalid deadline `soon`: use a value such as 90s",
            ),
            (
                "{shed.dev/workflow: a, shed.dev/workflow-deadline: history(p95)}",
                "shed.dev/workflow-deadline: invalid deadline",
            ),
            (
                "{shed.dev/workflow: a, shed.dev/workflow-deadline: '06:00'}",
                "has no time zone",
            ),
            (
                "{shed.dev/workflow: a, shed.dev/workflow-class: 'a b'}",
                "shed.dev/workflow-class: invalid name `a b`",
            ),
            (
                "{shed.dev/workflow: a, shed.dev/workflow-start: now}",
                "shed.dev/workflow-start: invalid value `now`: use an instant such as",
            ),
            (
                "{shed.dev/workflow: a, shed.dev/workflow-last: 'yes'}",
                "shed.dev/workflow-last: invalid value `yes`: use \"true\"",
            ),
        ] {
            let said = read(yaml).unwrap_err();
            assert!(said.contains(words), "{yaml}: {said}");
        }
    }

    #[test]
    fn a_deadline_job_with_a_wrong_annotation_is_refused() {
        let mut job = fixtures::job("");
        let wrong = (ANNOTATION_WORKFLOW_DEADLINE.to_owned(), "4h".to_owned());
        job.metadata.annotations = Some([wrong].into());
        let said = validate(&job).unwrap_err().to_string();
        assert!(said.contains("needs shed.dev/workflow"), "{said}");
    }
}
