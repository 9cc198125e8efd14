//! Verbs that need no cluster.

use super::{run, run_with};

const GOOD: &str = "
apiVersion: shed.dev/v1alpha1
kind: DeadlineJob
metadata: {name: nightly}
spec:
  deadline: {within: 35m}
  completions: 40
  parallelism: 10
  idempotency: Safe
  expectedTaskDuration: {p50: 5m, p90: 8m}
  template: {spec: {containers: [{name: task, image: task}]}}
";

#[test]
fn check_reads_standard_input_and_forecasts() {
    let ran = run_with(&["check", "-f", "-"], GOOD);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(
        ran.out
            .starts_with("standard input: DeadlineJob nightly: valid\n"),
        "{ran:?}"
    );
    assert!(
        ran.out
            .contains("40 tasks, 10 at a time; deadline 35m after its creation"),
        "{ran:?}"
    );
    assert!(ran.out.contains("with 10 slots PoCD is 0."), "{ran:?}");
    let with_more = run_with(
        &["check", "-f", "-", "--slots", "40", "--require-feasible"],
        GOOD,
    );
    assert_eq!(with_more.code, 0, "{with_more:?}");
}

#[test]
fn slots_have_the_same_bound_in_each_verb() {
    for verb in [&["check", "-f", "-"][..], &["whatif", "nightly"]] {
        for slots in ["0", "100001", "many"] {
            let ran = run_with(&[verb, &["--slots", slots]].concat(), GOOD);
            let words = format!(
                "invalid value '{slots}' for '--slots <N>': use a whole number from 1 to 100000"
            );
            assert!(ran.code == 2 && ran.err.contains(&words), "{ran:?}");
        }
    }
}

#[test]
fn check_of_several_documents_fails_if_one_is_invalid() {
    let two = format!(
        "{GOOD}---\n{}",
        GOOD.replace("nightly", "weekly")
            .replace("parallelism: 10", "parallelism: 50")
    );
    let ran = run_with(&["check", "-f", "-"], &two);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("DeadlineJob nightly: valid"), "{ran:?}");
    let words =
        "DeadlineJob weekly: invalid\n  error: spec.parallelism must not be above spec.completions";
    assert!(ran.out.contains(words), "{ran:?}");
}

#[test]
fn check_fails_on_a_warning_if_it_is_strict() {
    let job = "
apiVersion: batch/v1
kind: Job
metadata: {name: nightly, annotations: {shed.dev/deadline: 1h}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
";
    let lenient = run_with(&["check", "-f", "-"], job);
    assert_eq!(lenient.code, 0, "{lenient:?}");
    assert!(lenient.out.contains("warning: spec.managedBy is absent"));
    let strict = run_with(&["check", "-f", "-", "--strict"], job);
    assert_eq!((strict.code, strict.out), (1, lenient.out));
    let good = run_with(&["check", "-f", "-", "--strict"], GOOD);
    assert_eq!(good.code, 0, "{good:?}");
}

#[test]
fn check_says_what_it_cannot_read() {
    for (arguments, input, words) in [
        (
            ["check", "-f", "/no/such.yaml"],
            "",
            "error: cannot read /no/such.yaml",
        ),
        (["check", "-f", "-"], "a: [", "document 1 is not valid YAML"),
        (
            ["check", "-f", "-"],
            "",
            "no DeadlineJob, Job or CronJob in it",
        ),
        (
            ["check", "-f", "-"],
            "{apiVersion: v1, kind: Secret}",
            "no DeadlineJob, Job or CronJob in it",
        ),
    ] {
        let ran = run_with(&arguments, input);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(words), "{words}: {ran:?}");
    }
}

#[test]
fn adopt_prints_the_lines_of_a_file() {
    let job = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: '0 1 * * *'
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
";
    let ran = run_with(
        &["adopt", "-", "--deadline", "5h", "--idempotency", "Safe"],
        job,
    );
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert_eq!(
        ran.out,
        "# add to CronJob nightly\nspec:\n  jobTemplate:\n    metadata:\n      annotations:\n        \
         shed.dev/deadline: 5h\n        shed.dev/idempotency: Safe\n    spec:\n      \
         managedBy: shed.dev/deadline-controller\n"
    );
    let whole = run_with(&["adopt", "-", "--deadline", "5h", "-o", "yaml"], job);
    let checked = run_with(&["check", "-f", "-"], &whole.out);
    assert_eq!(checked.code, 0, "{checked:?}");
    let by_flag = run_with(&["adopt", "-f", "-", "--deadline", "5h", "-o", "yaml"], job);
    assert_eq!((by_flag.code, by_flag.out), (0, whole.out));
    let both = run_with(&["adopt", "-f", "-", "a.yaml", "--deadline", "5h"], job);
    assert_eq!(both.code, 2, "{both:?}");
    let refused = run_with(&["adopt", "-"], job);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(
        refused.err.contains("it has no deadline: add --deadline"),
        "{refused:?}"
    );
}

#[test]
fn completions_exist_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "kubectl", "powershell", "zsh"] {
        let ran = run(&["completion", shell]);
        assert_eq!(ran.code, 0, "{shell}");
        assert!(ran.out.contains("stop-clones"), "{shell}");
    }
    assert_eq!(run(&["completion", "tcsh"]).code, 2);
}

#[test]
fn version_of_the_program_needs_no_cluster() {
    let ran = run(&["version", "--client"]);
    assert_eq!(
        (ran.code, ran.out),
        (0, format!("kubectl shed: {}\n", env!("CARGO_PKG_VERSION")))
    );
}
