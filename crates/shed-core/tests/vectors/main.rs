//! Golden vectors of the papers' formulas and algorithms, computed with 60 digits.
//!
//! Reads every JSON file in the folder that `SHED_VECTORS` names, or else in
//! `../shared/vectors` next to the workspace, or else a small sample that is committed here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

#[path = "vectors/allocation.rs"]
mod allocation;
#[path = "vectors/case.rs"]
mod case;
#[path = "vectors/formulas.rs"]
mod formulas;

use case::Case;

/// The kinds whose implementation comes with the policies that need them.
const LATER: [(&str, &[&str]); 2] = [
    ("shed-family/1", &["srquant", "laser", "chronos", "dolly"]),
    (
        "dollymp-sca/1",
        &[
            "pareto_fit",
            "speedup",
            "order_stats",
            "flow_example",
            "r_min",
            "measures",
            "alg1",
            "transient",
            "alg2_round",
            "delay_assign",
            "fluid",
            "load",
            "threshold",
            "p2",
            "gradient",
            "sca_round",
            "ese",
            "ese_copies",
            "ese_round",
            "mantri",
            "dolly",
            "baseline_round",
        ],
    ),
];

/// What is done with the cases of one kind.
enum Treatment {
    Check(fn(&mut Case)),
    Later,
    Unknown,
}

fn treatment(schema: &str, kind: &str) -> Treatment {
    if LATER
        .iter()
        .any(|(of, kinds)| *of == schema && kinds.contains(&kind))
    {
        return Treatment::Later;
    }
    if schema != "shed-family/1" {
        return Treatment::Unknown;
    }
    Treatment::Check(match kind {
        "shed_thm1" | "shed_thm2" | "plus_thm1" => formulas::uniform_pocd,
        "plus_thm2" => formulas::plus_thm2,
        "beta" => formulas::beta,
        "observe" => formulas::observe,
        "resume_offset" => formulas::resume_offset,
        "theta" => formulas::theta,
        "alpha_fair" => formulas::alpha_fair,
        "silent" => formulas::silent,
        "mixed" => formulas::mixed,
        "alloc_task" => allocation::alloc_task,
        "alloc_job" => allocation::alloc_job,
        _ => return Treatment::Unknown,
    })
}

/// The files to read; a folder that was asked for has to exist.
fn files() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = match std::env::var_os("SHED_VECTORS") {
        Some(folder) => {
            let folder = PathBuf::from(folder);
            assert!(
                folder.is_dir(),
                "SHED_VECTORS is set but {} is no folder",
                folder.display()
            );
            folder
        }
        None => here.join("../../../shared/vectors"),
    };
    if !folder.is_dir() {
        println!(
            "no vectors at {}: using the committed SAMPLE only",
            folder.display()
        );
        return vec![here.join("tests/data/vectors-sample.json")];
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no JSON file in {}", folder.display());
    files
}

/// Every case of a file: the elements of all its lists.
fn cases(file: &Value) -> Vec<&Value> {
    let lists = file
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_array);
    lists.flatten().collect()
}

#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
    later: u32,
}

#[test]
fn every_golden_vector_is_met() {
    let mut tallies: BTreeMap<(String, String), Tally> = BTreeMap::new();
    let mut failures = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let schema = file["schema"].as_str().unwrap_or("none");
        let cases = cases(&file);
        assert!(!cases.is_empty(), "{} holds no cases", path.display());
        for value in cases {
            let kind = value["kind"].as_str().unwrap_or("none");
            let tally = tallies.entry((schema.into(), kind.into())).or_default();
            let found = match treatment(schema, kind) {
                Treatment::Later => {
                    tally.later += 1;
                    continue;
                }
                Treatment::Unknown => vec![format!("{schema}: kind `{kind}` is unknown")],
                Treatment::Check(check) => Case::run(value, check),
            };
            if found.is_empty() {
                tally.passed += 1;
            } else {
                tally.failed += 1;
            }
            failures.extend(found);
        }
    }
    println!(
        "{:<15}{:<16}{:>7}{:>7}{:>9}",
        "schema", "kind", "passed", "failed", "skipped"
    );
    for ((schema, kind), tally) in &tallies {
        let Tally {
            passed,
            failed,
            later,
        } = tally;
        println!("{schema:<15}{kind:<16}{passed:>7}{failed:>7}{later:>9}");
    }
    let checked: u32 = tallies
        .values()
        .map(|tally| tally.passed + tally.failed)
        .sum();
    println!("{checked} cases checked; skipped kinds come with the policies that need them");
    assert!(checked > 0, "nothing was checked");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
