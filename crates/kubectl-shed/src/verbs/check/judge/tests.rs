use super::*;
use crate::documents;

const TASK: &str =
    "template: {spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}";

fn judge() -> Judge {
    Judge::new("2030-01-31T08:00:00Z".parse().unwrap())
}

fn verdict_by(judge: &Judge, text: &str) -> Verdict {
    let documents = documents::parse(text).unwrap();
    let mut verdicts = judge.judge(&documents);
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0)
}

fn verdict(text: &str) -> Verdict {
    verdict_by(&judge(), text)
}

fn deadline_job(change: &str) -> String {
    format!(
        "apiVersion: shed.dev/v1alpha1\nkind: DeadlineJob\nmetadata: {{name: nightly}}\nspec:\n  completions: 4\n  \
         idempotency: Safe\n  {TASK}\n  {change}\n"
    )
}

fn job(metadata: &str, change: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: nightly, {metadata}}}\nspec:\n  {TASK}\n  {change}\n"
    )
}

const MANAGED: &str = "managedBy: shed.dev/deadline-controller";

#[test]
fn a_valid_job_has_its_forecast() {
    let text = deadline_job("deadline: {within: 60s}\n  expectedTaskDuration: {p50: 100s}");
    let found = verdict(&text);
    assert_eq!(found.errors, [""; 0]);
    assert_eq!(
        found.notes,
        [
            "4 tasks, 4 at a time; deadline 1m after its creation (2030-01-31T08:01:00Z if created now)"
        ]
    );
    let warning = &found.warnings[0];
    assert!(
        warning.starts_with("spec.deadline is not feasible: with 4 slots PoCD is 0.0"),
        "{warning}"
    );
    assert!(
        warning.contains("the earliest deadline that reaches 0.9 is 2030-01-31T08:0"),
        "{warning}"
    );
}

#[test]
fn an_infeasible_deadline_is_an_error_only_if_required() {
    let text = deadline_job("deadline: {within: 400s}\n  expectedTaskDuration: {p50: 100s}");
    let with = |slots, requires_feasible| {
        let judge = Judge {
            slots: Some(slots),
            requires_feasible,
            ..judge()
        };
        verdict_by(&judge, &text)
    };
    assert!(with(4, true).is_valid(), "{:?}", with(4, true));
    let note = &with(4, true).notes[1];
    assert!(note.starts_with("with 4 slots PoCD is 1.000"), "{note}");
    assert!(with(1, false).is_valid());
    assert!(
        with(1, false).warnings[0].contains("with 1 slots PoCD is 0."),
        "{:?}",
        with(1, false)
    );
    assert!(!with(1, true).is_valid());
}

#[test]
fn a_missing_duration_is_reported_in_place_of_a_forecast() {
    let text = deadline_job("deadline: {within: 1h}");
    let found = verdict(&text);
    assert!(found.is_valid());
    assert!(
        found.notes[1].contains("add it, e.g. {p50: 10m, p90: 15m}"),
        "{:?}",
        found.notes
    );
    let strict = Judge {
        requires_feasible: true,
        ..judge()
    };
    assert!(!verdict_by(&strict, &text).is_valid());
}

#[test]
fn faults_of_schema_rules_and_shed_itself_are_found() {
    for (change, words) in [
        (
            "deadline: {within: soon}",
            "spec.deadline.within: invalid value `soon`",
        ),
        (
            "deadlin: {within: 1h}",
            "spec.deadlin: unknown field: did you mean deadline?",
        ),
        (
            "deadline: {within: 1h}\n  parallelism: 0",
            "spec.parallelism: 0 is too small: use at least 1",
        ),
        (
            "deadline: {within: 1h}\n  onMiss: Die",
            "spec.onMiss: unknown value `Die`: use one of Fail, Continue",
        ),
        (
            "deadline: {within: 1h}\n  parallelism: 9",
            "spec.parallelism must not be above spec.completions",
        ),
        ("onMiss: Fail", "spec.deadline: Required value"),
        ("deadline: {within: 1h}\n  indexes: 7-9", "spec.indexes: "),
    ] {
        let found = verdict(&deadline_job(change));
        let is_said = found.errors.iter().any(|error| error.contains(words));
        assert!(is_said, "{change}: {:?}", found.errors);
    }
    let nameless =
        deadline_job("deadline: {within: 1h}").replace("{name: nightly}", "{labels: {a: 1}}");
    assert_eq!(
        verdict(&nameless).errors,
        [
            "metadata.name: Required value: add it",
            "metadata.labels.a: `1` is not a string: put it in quotes"
        ]
    );
}

#[test]
fn a_deadline_that_is_over_is_said_to_be_over() {
    let found = verdict(&deadline_job("deadline: {at: 2029-01-01T00:00:00Z}"));
    assert!(
        found.notes[0].ends_with("deadline 2029-01-01T00:00:00Z, which is over"),
        "{:?}",
        found.notes
    );
}

#[test]
fn a_job_is_judged_by_its_annotations_and_its_manager() {
    let annotations = "annotations: {shed.dev/deadline: 1h}";
    let good = verdict(&job(annotations, MANAGED));
    assert_eq!((good.errors.len(), good.warnings.len()), (0, 0), "{good:?}");
    assert!(
        good.notes[0].starts_with("1 task, 1 at a time; deadline 1h after"),
        "{:?}",
        good.notes
    );
    for (metadata, change, words) in [
        (
            "annotations: {shed.dev/deadline: soon}",
            MANAGED,
            "annotation shed.dev/deadline: invalid",
        ),
        (
            "annotations: {shed.dev/deadlin: 1h}",
            MANAGED,
            "annotation shed.dev/deadlin: is unknown",
        ),
        (annotations, "completions: many", "spec.completions"),
    ] {
        let found = verdict(&job(metadata, change));
        let is_said = found.errors.iter().any(|error| error.contains(words));
        assert!(is_said, "{metadata} {change}: {found:?}");
    }
    for (metadata, change, words) in [
        (annotations, "completions: 2", "spec.managedBy is absent"),
        (
            "labels: {}",
            MANAGED,
            "without a deadline: add shed.dev/deadline",
        ),
        (
            annotations,
            "managedBy: example.com/other",
            "shed ignores this Job, because `example.com/other`",
        ),
        (
            annotations,
            "managedBy: shed.dev/deadline-controller\n  novel: 1",
            "spec.novel: ",
        ),
    ] {
        let found = verdict(&job(metadata, change));
        assert!(found.is_valid(), "{found:?}");
        let is_said = found.warnings.iter().any(|warning| warning.contains(words));
        assert!(is_said, "{metadata} {change}: {found:?}");
    }
}

#[test]
fn a_contradictory_annotation_does_not_hide_the_deadline() {
    let found = verdict(&job(
        "annotations: {shed.dev/deadline: 1h, shed.dev/idempotency: Fenced}",
        MANAGED,
    ));
    assert_eq!(found.errors.len(), 1, "{found:?}");
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn checkpoints_need_tasks_that_know_their_index() {
    let warnings = |change: &str| {
        let metadata = "annotations: {shed.dev/progress: file, shed.dev/resume: Checkpoint}";
        verdict(&job(metadata, &format!("{MANAGED}\n  {change}"))).warnings
    };
    let found = warnings("completions: 2");
    assert!(
        found.len() == 1 && found[0].starts_with("spec.completionMode: "),
        "{found:?}"
    );
    assert_eq!(warnings("completions: 1"), [""; 0]);
    assert_eq!(
        warnings("completions: 2\n  completionMode: Indexed"),
        [""; 0]
    );
}

#[test]
fn a_time_limit_before_the_deadline_is_a_warning() {
    let limited = |seconds: u32| {
        let change = format!("{MANAGED}\n  activeDeadlineSeconds: {seconds}");
        verdict(&job("annotations: {shed.dev/deadline: 1h}", &change)).warnings
    };
    assert_eq!(
        limited(1800),
        [
            "spec.activeDeadlineSeconds: 1800 stops the job before its deadline, which is 1h after its creation: raise \
          it, or leave it out"
        ]
    );
    assert_eq!(limited(3600), [""; 0]);
    let own = deadline_job("deadline: {within: 1h}\n  activeDeadlineSeconds: 60");
    let warning = &verdict(&own).warnings[0];
    assert!(
        warning.starts_with("spec.activeDeadlineSeconds: 60 stops the job"),
        "{warning}"
    );
}

#[test]
fn words_about_a_job_name_its_annotations() {
    let found = verdict(&job("annotations: {shed.dev/deadline: 1h}", MANAGED));
    let note = &found.notes[1];
    assert!(
        note.starts_with("no forecast, because shed.dev/expected-task-duration does not say"),
        "{note}"
    );
    let short = "annotations: {shed.dev/deadline: 60s, shed.dev/expected-task-duration: 100s}";
    let found = verdict(&job(short, MANAGED));
    let warning = &found.warnings[0];
    assert!(
        warning.starts_with("shed.dev/deadline is not feasible: "),
        "{warning}"
    );
    let strict = Judge {
        requires_feasible: true,
        ..judge()
    };
    let error = &verdict_by(&strict, &job(short, MANAGED)).errors[0];
    assert!(error.starts_with("shed.dev/deadline: "), "{error}");
}

#[test]
fn deadlines_that_no_duration_gives_are_read() {
    let note = |metadata: &str| verdict(&job(metadata, MANAGED)).notes[0].clone();
    let clock = note("annotations: {shed.dev/deadline: '06:00 Etc/UTC'}");
    assert!(
        clock.contains("deadline 22h after its creation (2030-02-01T06:00:00Z"),
        "{clock}"
    );
    let history =
        note("labels: {shed.dev/class: a}, annotations: {shed.dev/deadline: 'history(p95)*1.5'}");
    assert!(
        history.contains("a deadline from earlier runs of its class"),
        "{history}"
    );
    let run = note("annotations: {shed.dev/workflow: etl-1, shed.dev/workflow-deadline: 4h}");
    assert!(run.contains("the deadline of its workflow's run"), "{run}");
}

#[test]
fn a_gang_cannot_be_run() {
    let change =
        format!("{MANAGED}\n  scheduling: {{schedulingPolicy: {{gang: {{minCount: 2}}}}}}");
    let found = verdict(&job("annotations: {shed.dev/deadline: 1h}", &change));
    assert!(
        found.errors[0].starts_with("spec.scheduling.schedulingPolicy.gang: "),
        "{found:?}"
    );
}

#[test]
fn a_cron_job_has_its_lines_in_the_template_of_its_jobs() {
    let cron = |own: &str, jobs: &str| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: nightly{own}}}\nspec:\n  schedule: '0 1 * * *'\n  \
             jobTemplate:\n    metadata: {{{jobs}}}\n    spec: {{{MANAGED}, {TASK}}}\n"
        )
    };
    let good = verdict(&cron("", "annotations: {shed.dev/deadline: 5h}"));
    assert!(good.is_valid() && good.warnings.is_empty(), "{good:?}");
    let misplaced = verdict(&cron(", annotations: {shed.dev/deadline: 5h}", ""));
    assert!(
        misplaced.errors[0].contains("move it to spec.jobTemplate.metadata.annotations"),
        "{misplaced:?}"
    );
    let history = verdict(&cron("", "annotations: {shed.dev/deadline: history(p95)}"));
    assert!(history.is_valid(), "its class is the CronJob: {history:?}");
    let wrong = verdict(&cron("", "annotations: {shed.dev/deadline: soon}"));
    assert!(
        wrong.errors[0].starts_with("spec.jobTemplate.metadata: annotation shed.dev/deadline"),
        "{wrong:?}"
    );
}

#[test]
fn annotations_on_a_pod_template_are_errors() {
    let pods = "template: {metadata: {annotations: {shed.dev/deadline: 5h}}, \
                spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}";
    let move_it = "spec.template.metadata.annotations: shed.dev/deadline has no effect on a pod template: \
                   move it to the metadata of the Job";
    for manager in [MANAGED, "suspend: false"] {
        let job = format!(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: n}}, spec: {{{manager}, {pods}}}}}"
        );
        assert_eq!(verdict(&job).errors, [move_it], "{manager}");
        let cron = format!(
            "{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: n}}, spec: {{schedule: '0 1 * * *', \
             jobTemplate: {{spec: {{{manager}, {pods}}}}}}}}}"
        );
        let errors = [format!("spec.jobTemplate.{move_it}")];
        assert_eq!(verdict(&cron).errors, errors, "{manager}");
    }
}

#[test]
fn other_kinds_are_named_and_not_judged() {
    let found = verdict("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}");
    assert!(found.is_foreign && found.is_valid());
    assert_eq!(
        found.text("x.yaml"),
        "x.yaml: ConfigMap c: not checked, because shed does not run this kind\n"
    );
    let old = verdict("{apiVersion: shed.dev/v1, kind: DeadlineJob, metadata: {name: j}}");
    assert_eq!(
        old.text("x.yaml"),
        "x.yaml: DeadlineJob j: invalid\n  error: apiVersion: `shed.dev/v1` has no DeadlineJob: use shed.dev/v1alpha1\n"
    );
}

/// Of each annotation values that are valid, odd or wrong.
const VALUES: [(&str, &[&str]); 17] = [
    (
        "deadline",
        &[
            "5m",
            "1h30m",
            "1.5h",
            "300ms",
            "2562047h",
            "2562048h",
            "99999999999h",
            "10 min",
            "PT30M",
            "-5m",
            "0s",
            "2030-01-31T08:00:00Z",
            "1900-01-01T00:00:00Z",
            "-000001-01-01T00:00:00Z",
            "06:00 Europe/Zurich",
            "24:00 Etc/UTC",
            "06:00 europe/zurich",
            "history(p95)*1.5",
            "history(max)",
            "history(p50)*0.001",
        ],
    ),
    ("clock-start", &["Creation", "Start", "start"]),
    ("on-miss", &["Fail", "Continue", "fail"]),
    ("idempotency", &["Safe", "None", "Fenced", "safe"]),
    (
        "progress",
        &[
            "file",
            "{file: {}}",
            "{file: {}, periodSeconds: 3600}",
            "{file: {}, periodSeconds: 0}",
            "{httpGet: {port: 8080}}",
            "{httpGet: {port: 99999}}",
            "{httpGet: {port: 80, path: 'progress'}}",
            "{metric: {port: 80, name: done_total, total: all}}",
            "{metric: {port: 80, name: 1a}}",
            "{file: {}, period: 3}",
        ],
    ),
    ("resume", &["None", "Checkpoint", "Range"]),
    ("preemption", &["Never", "WhenCheckpointed"]),
    ("speculation", &["Enabled", "Observe", "Disabled"]),
    ("max-clones-per-task", &["0", "20", "21", "-1", "2.5"]),
    (
        "clone-budget",
        &["0", "0.2", "20", "21", "-0", "1e-320", "inf"],
    ),
    ("target-pocd", &["0.95", "1", "0", "1e-400", "NaN"]),
    (
        "expected-task-duration",
        &[
            "10m",
            "{p50: 10m, p90: 15m}",
            "{p50: 10m, p90: 5m}",
            "{p50: 10m, p95: 1h}",
            "2562048h",
        ],
    ),
    ("workflow", &["etl-7", "etl"]),
    ("workflow-deadline", &["4h", "06:00 Europe/Zurich"]),
    ("workflow-class", &["etl"]),
    ("workflow-start", &["2030-01-31T08:00:00Z"]),
    ("workflow-last", &["true", "false"]),
];

/// What other annotations need, if they are there alone.
const OTHERS: [&[(&str, &str)]; 4] = [
    &[],
    &[("workflow", "etl-7")],
    &[
        ("deadline", "5m"),
        ("idempotency", "Safe"),
        ("progress", "file"),
    ],
    &[("resume", "Checkpoint"), ("progress", "file")],
];

/// The companion of a Job with these annotations, if shed adopts it.
fn companion(annotations: &[(&str, &str)]) -> Option<Value> {
    let named = |(name, value): &(&str, &str)| (format!("shed.dev/{name}"), (*value).to_owned());
    let job = Job {
        metadata: ObjectMeta {
            name: Some("nightly".to_owned()),
            uid: Some("u".to_owned()),
            labels: Some([(api::LABEL_CLASS.to_owned(), "nightly".to_owned())].into()),
            annotations: Some(annotations.iter().map(named).collect()),
            ..ObjectMeta::default()
        },
        ..Job::default()
    };
    let companion = translate::companion(&job).ok()?;
    serde_json::to_value(companion).ok()
}

/// The value itself, and with each character put in at each place.
fn variants(value: &str) -> impl Iterator<Item = String> + '_ {
    let places = value.char_indices().map(|(at, _)| at).chain([value.len()]);
    let others = places.flat_map(move |at| {
        let put = move |one: char| {
            let mut text = value.to_owned();
            text.insert(at, one);
            text
        };
        " \n0.-:/mx".chars().map(put)
    });
    others.chain([value.to_owned()])
}

#[test]
fn what_adoption_accepts_the_crd_accepts() {
    let names = VALUES.map(|(name, _)| name);
    assert_eq!(names, annotations::KNOWN, "each annotation has values");
    for (name, values) in VALUES {
        let mut accepted = 0;
        for text in values.iter().flat_map(|value| variants(value)) {
            let of_others = OTHERS.iter().find_map(|others| {
                let mut all = others.to_vec();
                all.retain(|(other, _)| *other != name);
                all.push((name, &text));
                companion(&all)
            });
            let Some(object) = of_others else { continue };
            accepted += 1;
            let object = rules::without_nulls(&object);
            let defaulted = RULES.defaulted(&object);
            let mut found = schema::violations(RULES.spec(), &defaulted["spec"], "spec");
            found.extend(RULES.violations(&object, true));
            assert_eq!(found, [""; 0], "{name}: {text:?}");
        }
        assert!(accepted > 1, "{name}");
    }
}
