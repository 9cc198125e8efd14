//! Golden vectors of the papers' formulas and algorithms, computed with 60 digits.
//!
//! Reads every JSON file in the folder that `SHED_VECTORS` names, or else in
//! `../shared/vectors` next to the workspace, or else the sample that is committed here. Prints
//! the cases per kind; a case that differs, an output that is not looked at, a kind that is not
//! known and a kind without a case in the sample are failures.

mod case;
mod dollymp_sca;
mod shed_family;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use case::{Case, Tolerances};

/// How a case of one kind is checked.
type Check = fn(&mut Case);

/// The schemas and their kinds.
const SCHEMAS: [(&str, &[(&str, Check)]); 2] = [
    ("shed-family/1", &shed_family::CHECKS),
    ("dollymp-sca/1", &dollymp_sca::CHECKS),
];

fn check_of(schema: &str, kind: &str) -> Option<Check> {
    let (_, checks) = SCHEMAS.iter().find(|(name, _)| *name == schema)?;
    let (_, check) = checks.iter().find(|(name, _)| *name == kind)?;
    Some(*check)
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/sample")
}

/// The folder to read. A folder named by the environment must exist.
fn folder() -> PathBuf {
    if let Some(asked) = std::env::var_os("SHED_VECTORS") {
        let folder = PathBuf::from(asked);
        assert!(
            folder.is_dir(),
            "SHED_VECTORS is set but {} is no folder",
            folder.display()
        );
        return folder;
    }
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    if shared.is_dir() {
        return shared;
    }
    println!(
        "no vectors at {}: using the committed SAMPLE only",
        shared.display()
    );
    sample()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no JSON file in {}", folder.display());
    files
}

/// Every case of a file: the elements of all its lists.
fn cases(file: &Value) -> Vec<&Value> {
    let lists = file.as_object().unwrap().values();
    lists.filter_map(Value::as_array).flatten().collect()
}

#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
}

type Tallies = BTreeMap<(String, String), Tally>;

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The kinds without a case in the committed sample, as sentences.
fn missing_in_sample() -> Vec<String> {
    let mut missing = Vec::new();
    let sample: Vec<Value> = files(&sample()).iter().map(|path| read(path)).collect();
    for (schema, kinds) in SCHEMAS {
        let of_schema = || sample.iter().filter(|file| file["schema"] == schema);
        for (kind, _) in kinds {
            if !of_schema()
                .flat_map(cases)
                .any(|case| case["kind"] == *kind)
            {
                missing.push(format!("{schema}: the sample has no case of `{kind}`"));
            }
        }
    }
    missing
}

/// Runs every case of a file. Returns the differences, as sentences.
fn run_file(path: &Path, tallies: &mut Tallies) -> Vec<String> {
    let file = read(path);
    let schema = file["schema"].as_str().unwrap_or("none");
    let cases = cases(&file);
    assert!(!cases.is_empty(), "{} holds no cases", path.display());
    let mut failures = Vec::new();
    for value in cases {
        let kind = value["kind"].as_str().unwrap_or("none");
        let found = match check_of(schema, kind) {
            Some(check) => Case::run(value, Tolerances::of(&file, kind), check),
            None => vec![format!("{schema}: kind `{kind}` is unknown")],
        };
        let tally = tallies.entry((schema.into(), kind.into())).or_default();
        if found.is_empty() {
            tally.passed += 1;
        } else {
            tally.failed += 1;
        }
        failures.extend(found);
    }
    failures
}

fn print(tallies: &Tallies) {
    println!(
        "{:<15}{:<16}{:>7}{:>7}",
        "schema", "kind", "passed", "failed"
    );
    let mut all = Tally::default();
    for ((schema, kind), Tally { passed, failed }) in tallies {
        println!("{schema:<15}{kind:<16}{passed:>7}{failed:>7}");
        all.passed += passed;
        all.failed += failed;
    }
    println!("{:<31}{:>7}{:>7}", "all", all.passed, all.failed);
}

fn main() -> ExitCode {
    let mut tallies = Tallies::new();
    let mut failures = missing_in_sample();
    for path in files(&folder()) {
        failures.extend(run_file(&path, &mut tallies));
    }
    print(&tallies);
    for failure in &failures {
        println!("{failure}");
    }
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
