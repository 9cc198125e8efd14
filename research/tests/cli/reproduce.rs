//! `reproduce`: its output, its check of a page, and unknown names.

use std::process::Command;

use crate::common::{Folder, path, run_fails, succeeds};

#[test]
fn a_page_is_written_with_the_values_of_a_figure() {
    let folder = Folder::new("reproduce");
    let page = folder.0.join("page.md");
    let args = [
        "reproduce",
        "P-model",
        "D2-model",
        "p-model",
        "--out",
        path(&page),
    ];
    assert_eq!(succeeds(&args), "");
    let text = std::fs::read_to_string(&page).expect("the page");
    for row in [
        "| θ in s, D 350 s | 74.5 | 74.5 | 0 | ± 1e-4 | holds |",
        "| DollyMP¹: sum of completion times, s | Figure 2, section 2 | 28 | 28 | 0 | ± 1e-9 | holds |",
    ] {
        assert_eq!(text.matches(row).count(), 1, "{text}");
    }
    let printed = text.split("## Reference values").next();
    assert!(
        printed.is_some_and(|printed| !printed.contains("θ in s")),
        "{text}"
    );
}

#[test]
fn a_page_is_checked_up_to_its_commit() {
    let folder = Folder::new("reproduce-check");
    let page = folder.0.join("page.md");
    let figures = [
        "reproduce",
        "S-2",
        "P-clones",
        "--seeds",
        "2",
        "--scale",
        "0.1",
    ];
    let with = |more: &[&'static str], page: &str| {
        let args: Vec<&str> = figures.iter().chain(more).copied().chain([page]).collect();
        args.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |args: &[String]| {
        Command::new(env!("CARGO_BIN_EXE_shed-lab"))
            .args(args)
            .output()
            .expect("the binary starts")
    };
    let written = run(&with(&["--commit", "abc", "--out"], path(&page)));
    assert!(written.status.success());
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(text.contains("is of commit `abc`."), "{text}");
    let checked = run(&with(&["--commit", "def", "--check"], path(&page)));
    assert!(checked.status.success(), "{checked:?}");
    let changed = text.replace(
        "| mean job time, s, r 5 | 154",
        "| mean job time, s, r 5 | 164",
    );
    assert_ne!(changed, text);
    std::fs::write(&page, changed).expect("the page is written");
    let checked = run(&with(&["--check"], path(&page)));
    let message = String::from_utf8(checked.stderr).expect("a message in UTF-8");
    assert_eq!(checked.status.code(), Some(1), "{message}");
    assert!(
        message.contains("- | mean job time, s, r 5 | 164"),
        "{message}"
    );
    assert!(
        message.contains("+ | mean job time, s, r 5 | 154"),
        "{message}"
    );
}

#[test]
fn an_unknown_figure_is_answered_with_those_there_are() {
    let known = ["all", "shed-plus", "P-6", "S-3", "L-1", "D8", "S4"];
    run_fails(
        &["reproduce", "P-model", "P-99"],
        "unknown figure `P-99`",
        &known,
    );
}

#[test]
fn figures_on_a_trace_that_is_not_there_are_not_run_and_say_so() {
    // The tests' own environment may name the folder.
    let output = Command::new(env!("CARGO_BIN_EXE_shed-lab"))
        .args(["reproduce", "D8", "D12"])
        .env_remove("SHED_TRACES")
        .output()
        .expect("the binary starts");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("output in UTF-8");
    let reason = "Not run: SHED_TRACES does not name a folder with google2011_part0_a.csv.gz.";
    assert_eq!(text.matches("Not run: ").count(), 1, "{text}");
    assert!(text.contains(reason), "{text}");
    let open = "cannot be made: a time of this machine differs in each run";
    assert_eq!(text.matches(open).count(), 2, "{text}");
}
