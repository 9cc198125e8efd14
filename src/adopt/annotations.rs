//! Annotations under `shed.dev/` of a batch/v1 Job: its requests to shed. Pure.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use shed_core::snapshot::ExpectedDuration;

use crate::adopt::progress_text;
use crate::api::{
    ClockStart, Deadline, DeadlineJobSpec, ExpectedTaskDuration, GROUP, Idempotency, LABEL_CLASS,
    OnMiss, Preemption, ProgressSource, Resume, Speculation, SpeculationMode, WORKFLOW_ANNOTATIONS,
    is_clone_budget,
};
use crate::validate::{Workflow, deadline_text, duration};

const DEADLINE: &str = "deadline";
const CLOCK_START: &str = "clock-start";
const ON_MISS: &str = "on-miss";
const IDEMPOTENCY: &str = "idempotency";
const PROGRESS: &str = "progress";
const RESUME: &str = "resume";
const PREEMPTION: &str = "preemption";
const SPECULATION: &str = "speculation";
const MAX_CLONES: &str = "max-clones-per-task";
const CLONE_BUDGET: &str = "clone-budget";
const TARGET: &str = "target-pocd";
const EXPECTED: &str = "expected-task-duration";
const WORKFLOW: &str = "workflow";
const WORKFLOW_DEADLINE: &str = "workflow-deadline";
/// The names of all annotations.
pub const KNOWN: [&str; 17] = [
    DEADLINE,
    CLOCK_START,
    ON_MISS,
    IDEMPOTENCY,
    PROGRESS,
    RESUME,
    PREEMPTION,
    SPECULATION,
    MAX_CLONES,
    CLONE_BUDGET,
    TARGET,
    EXPECTED,
    WORKFLOW,
    WORKFLOW_DEADLINE,
    "workflow-class",
    "workflow-start",
    "workflow-last",
];

/// Content of the annotations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    /// When the Job must be complete.
    pub deadline: Option<Deadline>,
    /// Action at the deadline. Absent: the Job does not set it.
    pub on_miss: Option<OnMiss>,
    /// Whether two live copies of a task do harm. Absent: not specified.
    pub idempotency: Option<Idempotency>,
    /// How attempts report progress.
    pub progress: Option<ProgressSource>,
    /// Where clones and retries begin.
    pub resume: Resume,
    /// Whether shed may preempt its attempts in favor of a more urgent job.
    pub preemption: Preemption,
    /// Clones of stragglers.
    pub speculation: Speculation,
    /// Probability of completion that is high enough.
    pub target_pocd: Option<f64>,
    /// How long a task takes.
    pub expected_task_duration: Option<ExpectedTaskDuration>,
    /// The run of a workflow that the Job is a stage of.
    pub workflow: Option<Workflow>,
}

impl Wishes {
    fn names_deadline(&self) -> bool {
        let run = self.workflow.as_ref();
        self.deadline.is_some() || run.is_some_and(|run| run.deadline.is_some())
    }
}

/// An annotation that can't be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation shed.dev/{name}: {problem}")]
pub struct BadAnnotation {
    name: String,
    problem: String,
}

fn bad(name: &str, problem: impl Into<String>) -> BadAnnotation {
    BadAnnotation {
        name: name.to_owned(),
        problem: problem.into(),
    }
}

/// Reads a Job's annotations.
pub fn read(annotations: Option<&BTreeMap<String, String>>) -> Result<Wishes, BadAnnotation> {
    let mut own: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, value) in annotations.into_iter().flatten() {
        let Some(name) = own_name(key) else { continue };
        if !KNOWN.contains(&name) {
            let known = KNOWN.join(", ");
            return Err(bad(name, format!("is unknown: use one of {known}")));
        }
        own.insert(name, value.trim());
    }
    let clock_start = word(&own, CLOCK_START, "Creation or Start")?;
    let wishes = Wishes {
        deadline: deadline(&own, clock_start)?,
        on_miss: word(&own, ON_MISS, "Fail or Continue")?,
        idempotency: word(&own, IDEMPOTENCY, "Safe, Fenced or None")?,
        progress: progress(&own)?,
        resume: word(&own, RESUME, "None, Checkpoint or Range")?.unwrap_or_default(),
        preemption: word(&own, PREEMPTION, "Never or WhenCheckpointed")?.unwrap_or_default(),
        speculation: Speculation::default(),
        target_pocd: target(&own)?,
        expected_task_duration: expected(&own)?,
        workflow: Workflow::read(annotations).map_err(|fault| {
            let name = own_name(fault.key).unwrap_or(WORKFLOW);
            bad(name, fault.problem)
        })?,
    };
    agree(&wishes)?;
    let speculation = speculation(&own, &wishes)?;
    Ok(Wishes {
        speculation,
        ..wishes
    })
}

/// A Job's requests to shed, and its class.
pub fn requests(job: &ObjectMeta) -> Vec<(String, String)> {
    let class = job.labels.iter().flatten();
    let class = class.filter(|(key, _)| *key == LABEL_CLASS);
    let own = job.annotations.iter().flatten();
    let own = own.filter(|(key, _)| own_name(key).is_some());
    let both = class.chain(own);
    both.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Those of these annotations that are requests to shed.
pub fn requests_in(annotations: Option<&BTreeMap<String, String>>) -> Vec<&str> {
    let keys = annotations.into_iter().flat_map(BTreeMap::keys);
    let requests = keys.filter(|key| own_name(key).is_some_and(|name| KNOWN.contains(&name)));
    requests.map(String::as_str).collect()
}

/// The name of an annotation under `shed.dev/`.
fn own_name(key: &str) -> Option<&str> {
    key.strip_prefix(GROUP)?.strip_prefix('/')
}

/// The annotation whose change a companion can't follow.
pub fn fixed(now: &DeadlineJobSpec, wanted: &DeadlineJobSpec) -> Option<BadAnnotation> {
    let source = |spec: &DeadlineJobSpec| {
        let progress = spec.progress.clone();
        progress.map(|own| (own.file.is_some(), own.http_get, own.metric))
    };
    let changed = [
        (IDEMPOTENCY, now.idempotency != wanted.idempotency),
        (RESUME, now.resume != wanted.resume),
        (PROGRESS, source(now) != source(wanted)),
    ];
    let (name, _) = changed.into_iter().find(|(_, changed)| *changed)?;
    Some(cannot_change(name))
}

/// The annotation of a workflow whose change a companion can't follow. Both are annotations of companions.
pub fn fixed_workflow(
    now: Option<&BTreeMap<String, String>>,
    wanted: Option<&BTreeMap<String, String>>,
) -> Option<BadAnnotation> {
    let of = |all: Option<&BTreeMap<String, String>>, key: &str| all?.get(key).cloned();
    let changed = |key: &&str| of(now, key) != of(wanted, key);
    let key = WORKFLOW_ANNOTATIONS.into_iter().find(changed)?;
    Some(cannot_change(own_name(key).unwrap_or(WORKFLOW)))
}

fn cannot_change(name: &str) -> BadAnnotation {
    bad(
        name,
        "cannot be changed once shed runs the Job: restore its former value, or create another Job",
    )
}

/// Whether a Job specifies the effect of two copies of a task.
pub fn names_idempotency(annotations: Option<&BTreeMap<String, String>>) -> bool {
    names(annotations, IDEMPOTENCY)
}

/// Whether a Job specifies the action at its deadline.
pub fn names_on_miss(annotations: Option<&BTreeMap<String, String>>) -> bool {
    names(annotations, ON_MISS)
}

/// Whether a job specifies the deadline of its workflow's run.
pub fn names_workflow_deadline(annotations: Option<&BTreeMap<String, String>>) -> bool {
    names(annotations, WORKFLOW_DEADLINE)
}

fn names(annotations: Option<&BTreeMap<String, String>>, name: &str) -> bool {
    let key = format!("{GROUP}/{name}");
    annotations.is_some_and(|annotations| annotations.contains_key(&key))
}

fn word<T: DeserializeOwned>(
    own: &BTreeMap<&str, &str>,
    name: &str,
    words: &str,
) -> Result<Option<T>, BadAnnotation> {
    let Some(&text) = own.get(name) else {
        return Ok(None);
    };
    let value = serde_json::Value::String(text.to_owned());
    let wrong = |_| bad(name, format!("invalid value `{text}`: use {words}"));
    serde_json::from_value(value).map(Some).map_err(wrong)
}

fn deadline(
    own: &BTreeMap<&str, &str>,
    clock_start: Option<ClockStart>,
) -> Result<Option<Deadline>, BadAnnotation> {
    let Some(&text) = own.get(DEADLINE) else {
        return match clock_start {
            Some(_) => Err(bad(CLOCK_START, "needs shed.dev/deadline: add it")),
            None => Ok(None),
        };
    };
    let deadline = deadline_text::read(text).map_err(|problem| bad(DEADLINE, problem))?;
    if deadline.within.is_none() && clock_start.is_some() {
        return Err(bad(
            CLOCK_START,
            "applies to a duration in shed.dev/deadline only: remove it",
        ));
    }
    Ok(Some(Deadline {
        clock_start: clock_start.unwrap_or_default(),
        ..deadline
    }))
}

/// The history of a Job is that of its class.
pub(super) fn history_without_class() -> BadAnnotation {
    bad(
        DEADLINE,
        "history needs the label shed.dev/class on a Job that no CronJob created, because it is computed from earlier \
         Jobs of the same class: add the label, or use a duration",
    )
}

/// The part of a stage is learned from earlier runs in any case.
pub(super) fn history_with_workflow() -> BadAnnotation {
    bad(
        DEADLINE,
        "a deadline from history does not work with shed.dev/workflow-deadline, because shed learns the part of each \
         stage itself: remove one of them",
    )
}

fn target(own: &BTreeMap<&str, &str>) -> Result<Option<f64>, BadAnnotation> {
    let Some(&text) = own.get(TARGET) else {
        return Ok(None);
    };
    let number: Option<f64> = text.parse().ok();
    let target = number.filter(|number| *number > 0.0 && *number <= 1.0);
    let wrong = || {
        bad(
            TARGET,
            format!("invalid probability `{text}`: use a value such as 0.95"),
        )
    };
    target.map(Some).ok_or_else(wrong)
}

fn clone_budget(own: &BTreeMap<&str, &str>) -> Result<Option<f64>, BadAnnotation> {
    let Some(&text) = own.get(CLONE_BUDGET) else {
        return Ok(None);
    };
    let number: Option<f64> = text.parse().ok();
    let budget = number.filter(|number| is_clone_budget(*number));
    let wrong = || {
        let fix = "use a share of the job's own slot-seconds from 0 to 20, such as 0.2";
        bad(CLONE_BUDGET, format!("invalid value `{text}`: {fix}"))
    };
    budget.map(Some).ok_or_else(wrong)
}

/// A duration, or the content of a `DeadlineJob`'s spec.expectedTaskDuration.
fn expected(own: &BTreeMap<&str, &str>) -> Result<Option<ExpectedTaskDuration>, BadAnnotation> {
    let Some(&text) = own.get(EXPECTED) else {
        return Ok(None);
    };
    let fix = "use a duration such as 10m, or quantiles such as `{p50: 10m, p90: 15m}` with p90 at least p50";
    let wrong = || bad(EXPECTED, format!("invalid value `{text}`: {fix}"));
    let expected = match duration(text) {
        Some(_) => ExpectedTaskDuration {
            p50: text.to_owned(),
            p90: None,
        },
        None => progress_text::object(text).map_err(|_| wrong())?,
    };
    let p50 = duration(&expected.p50).ok_or_else(wrong)?;
    let p90 = match &expected.p90 {
        Some(text) => Some(duration(text).ok_or_else(wrong)?),
        None => None,
    };
    ExpectedDuration::new(p50, p90).map_err(|_| wrong())?;
    Ok(Some(expected))
}

/// `file`, or the content of a `DeadlineJob`'s spec.progress.
fn progress(own: &BTreeMap<&str, &str>) -> Result<Option<ProgressSource>, BadAnnotation> {
    let text = own.get(PROGRESS);
    let read = text.map(|text| progress_text::read(text)).transpose();
    read.map_err(|problem| bad(PROGRESS, problem))
}

/// Applies the rules that the schema of a `DeadlineJob` has too. There the messages name fields,
/// here annotations.
fn agree(wishes: &Wishes) -> Result<(), BadAnnotation> {
    let progress = wishes.progress.as_ref();
    let has_agent = progress.is_some_and(|source| source.file.is_some());
    if wishes.idempotency == Some(Idempotency::Fenced) && !has_agent {
        return Err(bad(
            IDEMPOTENCY,
            "Fenced needs an agent in each pod: add shed.dev/progress: file",
        ));
    }
    if wishes.preemption != Preemption::Never && wishes.resume != Resume::Checkpoint {
        return Err(bad(
            PREEMPTION,
            "WhenCheckpointed needs shed.dev/resume: Checkpoint, because a preempted task resumes from its \
             checkpoint",
        ));
    }
    match wishes.resume {
        Resume::None => Ok(()),
        Resume::Checkpoint if progress.is_some() => Ok(()),
        Resume::Checkpoint => Err(bad(
            RESUME,
            "Checkpoint needs shed.dev/progress, e.g. file, because tasks report checkpoints with their \
             progress",
        )),
        Resume::Range if !has_agent => Err(bad(RESUME, "Range needs shed.dev/progress: file")),
        Resume::Range if wishes.idempotency != Some(Idempotency::Safe) => Err(bad(
            RESUME,
            "Range needs shed.dev/idempotency: Safe, because segments of a task run at the same time",
        )),
        Resume::Range => Ok(()),
    }
}

/// Two copies of a task are launched only if its user declared them harmless, and if there is a
/// deadline to meet.
fn speculation(own: &BTreeMap<&str, &str>, wishes: &Wishes) -> Result<Speculation, BadAnnotation> {
    let words = "Enabled, Observe or Disabled";
    let asked: Option<SpeculationMode> = word(own, SPECULATION, words)?;
    let may = wishes.names_deadline()
        && matches!(
            wishes.idempotency,
            Some(Idempotency::Safe | Idempotency::Fenced)
        );
    if asked.is_some_and(|mode| mode != SpeculationMode::Disabled) && !may {
        let fix = "clones need shed.dev/deadline or shed.dev/workflow-deadline, and shed.dev/idempotency: Safe or \
                   Fenced";
        return Err(bad(SPECULATION, fix));
    }
    let unasked = match may {
        true => SpeculationMode::Enabled,
        false => SpeculationMode::Disabled,
    };
    let mut speculation = Speculation {
        mode: asked.unwrap_or(unasked),
        ..Speculation::default()
    };
    if let Some(&text) = own.get(MAX_CLONES) {
        let number = text.parse().ok().filter(|number| (0..=20).contains(number));
        let wrong = || {
            bad(
                MAX_CLONES,
                format!("invalid value `{text}`: use a number from 0 to 20"),
            )
        };
        speculation.max_clones_per_task = number.ok_or_else(wrong)?;
    }
    speculation.budget = clone_budget(own)?;
    Ok(speculation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(yaml: &str) -> Result<Wishes, String> {
        let annotations: BTreeMap<String, String> = serde_saphyr::from_str(yaml).unwrap();
        read(Some(&annotations)).map_err(|error| error.to_string())
    }

    #[test]
    fn spaces_and_line_breaks_around_a_value_do_not_count() {
        let block = "{shed.dev/deadline: \"5m\\n\", shed.dev/on-miss: ' Fail'}";
        let read = wishes(block).unwrap();
        assert_eq!(read.deadline.unwrap().within.as_deref(), Some("5m"));
        assert_eq!(read.on_miss, Some(OnMiss::Fail));
        let tabs = wishes("{shed.dev/deadline: \"\\t5m\\t\"}").unwrap();
        assert_eq!(tabs.deadline.unwrap().within.as_deref(), Some("5m"));
    }

    #[test]
    fn a_job_without_annotations_gets_nothing() {
        let none = wishes("{example.com/other: x}").unwrap();
        assert!(none.deadline.is_none() && none.progress.is_none());
        assert_eq!(none.speculation.mode, SpeculationMode::Disabled);
        assert_eq!(read(None).unwrap(), none);
    }

    #[test]
    fn a_deadline_is_a_duration_or_an_instant() {
        let within = wishes("{shed.dev/deadline: 1h30m, shed.dev/clock-start: Start}").unwrap();
        let deadline = within.deadline.unwrap();
        assert_eq!(deadline.within.as_deref(), Some("1h30m"));
        assert_eq!(deadline.clock_start, ClockStart::Start);
        let at = wishes("{shed.dev/deadline: '2030-01-31T08:00:00Z'}").unwrap();
        assert!(at.deadline.unwrap().at.is_some());
    }

    #[test]
    fn an_expected_duration_is_a_duration_or_a_pair_of_quantiles() {
        let expected = |text: &str| {
            let yaml = format!("{{shed.dev/expected-task-duration: '{text}'}}");
            wishes(&yaml).unwrap().expected_task_duration.unwrap()
        };
        assert_eq!(expected("10m").p50, "10m");
        assert_eq!(expected("10m").p90, None);
        let pair = expected("{p50: 10m, p90: 1h}");
        assert_eq!((&*pair.p50, pair.p90.as_deref()), ("10m", Some("1h")));
    }

    #[test]
    fn clones_require_a_deadline_and_declared_idempotency() {
        let mode = |yaml: &str| wishes(yaml).unwrap().speculation.mode;
        assert_eq!(mode("{shed.dev/deadline: 5m}"), SpeculationMode::Disabled);
        let both = "{shed.dev/deadline: 5m, shed.dev/idempotency: Safe}";
        assert_eq!(mode(both), SpeculationMode::Enabled);
        let never = "{shed.dev/deadline: 5m, shed.dev/idempotency: None}";
        assert_eq!(mode(never), SpeculationMode::Disabled);
    }

    #[test]
    fn a_stage_with_the_deadline_of_its_run_may_have_clones() {
        let run = "shed.dev/workflow: etl-1, shed.dev/idempotency: Safe";
        let mode = |yaml: &str| wishes(yaml).unwrap().speculation.mode;
        assert_eq!(mode(&format!("{{{run}}}")), SpeculationMode::Disabled);
        let due = format!("{{{run}, shed.dev/workflow-deadline: 4h}}");
        assert_eq!(mode(&due), SpeculationMode::Enabled);
        let said = wishes("{shed.dev/workflow-deadline: 4h}").unwrap_err();
        assert!(
            said.starts_with("annotation shed.dev/workflow-deadline: needs"),
            "{said}"
        );
    }

    #[test]
    fn a_budget_of_clones_is_a_share_and_may_be_zero() {
        let budget = |yaml: &str| wishes(yaml).unwrap().speculation.budget;
        assert_eq!(budget("{}"), None);
        assert_eq!(budget("{shed.dev/clone-budget: '0'}"), Some(0.0));
        assert_eq!(budget("{shed.dev/clone-budget: '0.25'}"), Some(0.25));
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name_with_the_fix() {
        for (yaml, words) in [
            ("{shed.dev/deadlin: 5m}", "shed.dev/deadlin: is unknown"),
            ("{shed.dev/deadline: soon}", "such as 90s"),
            ("{shed.dev/deadline: -5m}", "shed.dev/deadline"),
            (
                "{shed.dev/deadline: '06:00 Europe/Atlantis'}",
                "shed.dev/deadline: unknown time zone",
            ),
            (
                "{shed.dev/deadline: 'history(p95)', shed.dev/clock-start: Start}",
                "shed.dev/clock-start: applies to a duration",
            ),
            ("{shed.dev/clock-start: Start}", "shed.dev/clock-start"),
            ("{shed.dev/on-miss: Die}", "Fail or Continue"),
            ("{shed.dev/idempotency: yes}", "Safe, Fenced or None"),
            ("{shed.dev/idempotency: Fenced}", "shed.dev/progress: file"),
            (
                "{shed.dev/progress: '{file: {}, httpGet: {port: 1}}'}",
                "use `file`",
            ),
            ("{shed.dev/progress: 8080}", "use `file`"),
            (
                "{shed.dev/progress: '{file: {}, periodSeconds: 0}'}",
                "from 1 to 3600",
            ),
            (
                "{shed.dev/progress: '{httpGet: {port: 99999}}'}",
                "from 1 to 65535",
            ),
            (
                "{shed.dev/progress: '{httpGet: {port: 80, path: progress}}'}",
                "must begin with `/`",
            ),
            (
                "{shed.dev/progress: '{metric: {port: 80, name: a-b}}'}",
                "names of metrics",
            ),
            (
                "{shed.dev/progress: '{httpGet: {port: 80, pfad: /}}'}",
                "unknown key `httpGet.pfad`",
            ),
            (
                "{shed.dev/expected-task-duration: '{p50: 1m, p95: 2m}'}",
                "such as 10m",
            ),
            ("{shed.dev/deadline: PT30M}", "such as 90s"),
            ("{shed.dev/resume: Checkpoint}", "needs shed.dev/progress"),
            (
                "{shed.dev/resume: Range, shed.dev/progress: file}",
                "shed.dev/idempotency: Safe",
            ),
            ("{shed.dev/preemption: Always}", "Never or WhenCheckpointed"),
            (
                "{shed.dev/preemption: WhenCheckpointed}",
                "needs shed.dev/resume: Checkpoint",
            ),
            (
                "{shed.dev/speculation: Enabled}",
                "clones need shed.dev/deadline",
            ),
            ("{shed.dev/max-clones-per-task: '21'}", "from 0 to 20"),
            ("{shed.dev/clone-budget: '-0.1'}", "such as 0.2"),
            ("{shed.dev/clone-budget: '21'}", "from 0 to 20"),
            ("{shed.dev/clone-budget: NaN}", "from 0 to 20"),
            ("{shed.dev/target-pocd: '1.5'}", "such as 0.95"),
            ("{shed.dev/expected-task-duration: soon}", "such as 10m"),
            ("{shed.dev/expected-task-duration: 0s}", "such as 10m"),
            (
                "{shed.dev/expected-task-duration: '{p50: 10m, p90: 5m}'}",
                "p90 at least p50",
            ),
        ] {
            let yaml = yaml.replace(": 8080", ": '8080'");
            let said = wishes(&yaml).unwrap_err();
            assert!(said.contains(words), "{yaml}: {said}");
        }
    }

    #[test]
    fn a_progress_text_that_is_no_plain_object_is_refused() {
        for text in ["{file: {}, file: {}}", "{httpGet: &a {port: 1, path: *a}}"] {
            let said = wishes(&format!("{{shed.dev/progress: '{text}'}}")).unwrap_err();
            assert!(said.contains("use `file`"), "{text}: {said}");
        }
    }
}
