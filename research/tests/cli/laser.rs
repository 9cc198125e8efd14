//! `laser train`, and runs that use the networks it wrote.

use crate::common::{Folder, TINY, path, run_fails, succeeds};

const SETUP: [&str; 9] = [
    "--trace",
    "setup:L-1{jobs=60,tasks=4}",
    "--slots",
    "40",
    "--launch-overhead",
    "3",
    "--resume",
    "offset",
    "--report-noise=0.1",
];

fn train(out: &std::path::Path, more: &[&str]) -> String {
    let rest = [
        "--jobs",
        "110",
        "--units",
        "4",
        "--epochs",
        "1",
        "--trees",
        "2",
        "--out",
        path(out),
    ];
    succeeds(&[&["laser", "train"], &SETUP[..], &rest, more].concat())
}

fn digest(printed: &str) -> String {
    let row: serde_json::Value = serde_json::from_str(printed).unwrap();
    row["digest"].as_str().unwrap().to_owned()
}

#[test]
fn a_trained_model_decides_the_same_in_full_passes_and_replay() {
    let folder = Folder::new("laser");
    let [model, again, table] = ["a.json", "b.json", "table.md"].map(|name| folder.0.join(name));
    let printed = train(&model, &["--losses", path(&table)]);
    assert!(printed.starts_with("120 jobs; "), "{printed}");
    assert!(
        printed.contains("| machine | published | 1640 | 117.0 (94.0) |"),
        "{printed}"
    );
    assert_eq!(printed.matches("| ours |").count(), 3);
    assert_eq!(std::fs::read_to_string(&table).unwrap(), printed);
    // One seed, one file, bit by bit.
    train(&again, &[]);
    assert_eq!(
        std::fs::read(&model).unwrap(),
        std::fs::read(&again).unwrap()
    );

    let run = |more: &[&str]| {
        let run = [
            "run", "--policy", "laser", "--seed", "7", "--check", "--format", "json",
        ];
        succeeds(&[&run, &SETUP[..], more].concat())
    };
    let by_distribution = digest(&run(&[]));
    assert_eq!(digest(&run(&["--policy-file", "none"])), by_distribution);
    let by_model = run(&["--policy-file", path(&model)]);
    assert!(by_model.contains("a.json"), "{by_model}");
    assert_ne!(digest(&by_model), by_distribution);
    let recording = folder.0.join("recording");
    // A run that is recorded looks at every job in each pass.
    let by_file = ["--policy-file", path(&model)];
    let full = run(&[&by_file[..], &["--full-passes"]].concat());
    let recorded = run(&[&by_file[..], &["--record", path(&recording)]].concat());
    assert_eq!(digest(&recorded), digest(&full));
    // Without the file: the recording holds the networks.
    std::fs::remove_file(&model).unwrap();
    let verdict = succeeds(&["replay", path(&recording), "--format", "json"]);
    let verdict: serde_json::Value = serde_json::from_str(&verdict).unwrap();
    assert!(verdict["passes"].as_u64().unwrap() > 100, "{verdict}");
    assert_eq!(verdict["differing"], 0, "{verdict}");
}

#[test]
fn only_policies_with_networks_sweep_the_listed_models() {
    let folder = Folder::new("laser-sweep");
    let model = folder.0.join("a.json");
    train(&model, &[]);
    let models = format!("none,{}", path(&model));
    let rest = [
        "--policy",
        "srquant,laser",
        "--policy-file",
        &models,
        "--seed",
        "0..2",
    ];
    let printed = succeeds(&[&["compare"], &SETUP[..], &rest].concat());
    assert_eq!(printed.matches("srquant{").count(), 1, "{printed}");
    assert_eq!(printed.matches("laser{").count(), 2, "{printed}");
    assert_eq!(printed.matches("} by ").count(), 1, "{printed}");
}

#[test]
fn a_recording_is_learned_from_unless_it_is_too_small() {
    let folder = Folder::new("laser-recording");
    let [recording, model] = ["recording", "a.json"].map(|name| folder.0.join(name));
    let record = |jobs: u32| {
        // Remove files of an earlier run.
        let _ = std::fs::remove_dir_all(&recording);
        let trace = format!("setup:L-1{{jobs={jobs},tasks=3,slots=30}}");
        let run = [
            "run", "--policy", "srquant", "--slots", "30", "--resume", "offset",
        ];
        let rest = ["--trace", &trace, "--record", path(&recording)];
        succeeds(&[&run[..], &rest].concat());
    };
    let train = [
        "laser",
        "train",
        "--epochs",
        "1",
        "--trees",
        "0",
        "--policy",
        "laser{tau_est=0.25}",
        "--recording",
    ];
    record(20);
    run_fails(
        &[&train, &[path(&recording), "--out", path(&model)][..]].concat(),
        path(&recording),
        &[
            "field `jobs`: ",
            "at least 100 are needed",
            "record for longer",
        ],
    );
    assert!(!model.exists());
    record(130);
    let printed = succeeds(&[&train, &[path(&recording), "--out", path(&model)][..]].concat());
    assert!(printed.starts_with("130 jobs; "), "{printed}");
    assert!(printed.contains("No forest was grown."), "{printed}");
}

#[test]
fn faulty_models_are_refused_by_file_field_and_what_to_do() {
    let folder = Folder::new("laser-faulty");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let model = folder.0.join("a.json");
    train(&model, &[]);
    let text = std::fs::read_to_string(&model).unwrap();
    let refused = |text: &str, what: &[&str]| {
        let file = folder.file("b.json", text.as_bytes());
        for command in ["run", "sweep", "compare"] {
            let trace = ["--trace", path(&trace), "--slots", "2", "--policy", "laser"];
            let rest = ["--policy-file", path(&file)];
            let out = folder.0.join("out.jsonl");
            let out = ["--out", path(&out)];
            let out = if command == "sweep" { &out[..] } else { &[] };
            run_fails(
                &[&[command], &trace[..], &rest, out].concat(),
                path(&file),
                what,
            );
        }
    };
    let run = |policy, model, file: &str, what: &[&str]| {
        let run = ["run", "--trace", path(&trace), "--slots", "2"];
        let rest = ["--policy", policy, "--policy-file", model];
        run_fails(&[&run[..], &rest].concat(), file, what);
    };
    let no_networks = ["`srquant` reads no file", "a policy that does"];
    run("srquant", path(&model), "--policy-file", &no_networks);
    run("laser", "no.json", "no.json", &["No such file"]);
    let again = "shed-lab laser train";
    let other = text.replacen("\"version\":1", "\"version\":9", 1);
    refused(
        &other,
        &["field `version`", "version 9", "reads version 1", again],
    );
    refused(&text[..text.len() / 2], &["cut off", again]);
    let missing = text.replacen("\"elapsed\"", "\"elapsed_s\"", 1);
    refused(
        &missing,
        &[
            "field `task.inputs`",
            "`elapsed` missing",
            "`elapsed_s` unknown",
            again,
        ],
    );
}

#[test]
fn training_says_what_it_can_not_use() {
    let folder = Folder::new("laser-unusable");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let model = folder.0.join("a.json");
    let train = |more: &[&str], file: &str, what: &[&str]| {
        let train = [
            "laser",
            "train",
            "--trace",
            path(&trace),
            "--out",
            path(&model),
        ];
        run_fails(&[&train, more].concat(), file, what);
        assert!(!model.exists());
    };
    train(&[], "--slots", &["--slots or --nodes is needed"]);
    let other = ["--slots", "2", "--policy", "srquant"];
    train(
        &other,
        "--policy srquant",
        &["networks are trained for laser"],
    );
    train(
        &["--slots", "2", "--tasks", "50..60"],
        path(&trace),
        &["holds no task"],
    );
    train(
        &["--slots", "2", "--jobs", "4"],
        path(&trace),
        &["field `jobs`: ", "at least 100"],
    );
}
