//! `reproduce`: its output, and unknown names.

use crate::common::{Folder, path, run_fails, succeeds};

#[test]
fn a_page_is_written_with_the_values_of_a_figure() {
    let folder = Folder::new("reproduce");
    let page = folder.0.join("page.md");
    let args = [
        "reproduce",
        "P-model",
        "S-model",
        "p-model",
        "--out",
        path(&page),
    ];
    assert_eq!(succeeds(&args), "");
    let text = std::fs::read_to_string(&page).expect("the page");
    let row = "| P-model | θ in s, D 350 s | 74.5 | 74.5 | 1.000 | 0 | ± 1e-4 | holds |";
    assert_eq!(text.matches(row).count(), 1, "{text}");
    assert!(text.contains("## shed: ") && text.contains("## shed-plus: "));
}

#[test]
fn an_unknown_figure_is_answered_with_those_there_are() {
    let known = ["all", "shed-plus", "P-6", "S-3", "L-1", "D8", "S4"];
    run_fails(
        &["reproduce", "P-model", "P-99"],
        "`P-99` is no figure",
        &known,
    );
}

#[test]
fn figures_on_a_trace_that_is_not_there_are_not_run_and_say_so() {
    // The tests' own environment may name the folder.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_shed-lab"))
        .args(["reproduce", "D8", "D12"])
        .env_remove("SHED_TRACES")
        .output()
        .expect("the binary starts");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("output in UTF-8");
    let reason = "Not run: SHED_TRACES does not name a folder with google2011_part0_a.csv.gz";
    assert_eq!(text.matches("Not run: ").count(), 2, "{text}");
    assert!(text.contains(reason), "{text}");
}
