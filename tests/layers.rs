//! The modules of the operator import each other one way only: cluster state, job view, planner, reconciler. Each has
//! one row in ARCHITECTURE.md, and a caller. `make lint` runs this by `.ci/layers`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the lowest to the highest. A module imports none that stands behind it.
const LAYERS: [(&str, &[&str]); 10] = [
    (
        "basics",
        &[
            "clock",
            "size",
            "fair_places",
            "forecast",
            "registrar",
            "memory_limit",
            "watch_age",
            "answer_layer",
            "api",
            "token_bucket",
            "observed_clones",
            "quarantine",
        ],
    ),
    (
        "specification",
        &["validate", "pod_names", "adopt", "agent_keys"],
    ),
    (
        "cluster state",
        &[
            "conditions",
            "deadline_totals",
            "completion_history",
            "workflow_runs",
            "cluster",
            "polling",
        ],
    ),
    ("job view", &["bounds", "job", "attempt_pod"]),
    (
        "services",
        &[
            "lease",
            "durable_state",
            "metrics",
            "watchdog",
            "progress",
            "fence",
            "server",
        ],
    ),
    (
        "what planner and reconciler share",
        &[
            "args",
            "plan_slices",
            "planner_copies",
            "context",
            "recording",
        ],
    ),
    ("planner", &["planner"]),
    ("reconciler", &["reconcile"]),
    ("answers to people", &["leader_api"]),
    (
        "process",
        &[
            "restore_check",
            "operator",
            "uninstall_check",
            "span_export",
            "cli",
        ],
    ),
];

/// A place in the layers, for comparison, and its words.
fn place(module: &str) -> Option<((usize, usize), &'static str)> {
    LAYERS
        .iter()
        .enumerate()
        .find_map(|(layer, (name, modules))| {
            let within = modules.iter().position(|one| *one == module)?;
            Some(((layer, within), *name))
        })
}

/// The fault of an import, if there is one.
fn fault(from: &str, to: &str) -> Option<String> {
    match (place(from), place(to)) {
        (Some((own, layer)), Some((imported, above))) if own < imported => Some(format!(
            "{from} ({layer}) imports {to} ({above}), which stands above it: move what is needed down, or \
             pass it as an argument"
        )),
        (Some(_), Some(_)) => None,
        (None, _) => Some(format!("{from} has no place in tests/layers.rs")),
        (_, None) => Some(format!("{to} has no place in tests/layers.rs")),
    }
}

/// The code of a file without comments and without its tests at the end.
fn code(text: &str) -> String {
    let mut tests = text.match_indices("#[cfg(test)]\nmod ");
    let is_block = |at: usize| {
        text[at..]
            .lines()
            .nth(1)
            .is_some_and(|line| line.contains('{'))
    };
    let end = tests
        .find(|(at, _)| is_block(*at))
        .map_or(text.len(), |(at, _)| at);
    let lines = text[..end].lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that a text names behind `crate::`, also within braces.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, prefix) in code.match_indices("crate::") {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            None => drop(found.insert(word(rest))),
            Some(group) => found.extend(members(group)),
        }
    }
    found
}

fn word(text: &str) -> String {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    text.trim_start().chars().take_while(is_part).collect()
}

/// The first words of a group's members; it ends at its closing brace.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut begins, mut found) = (0, true, Vec::new());
    for (at, character) in group.char_indices() {
        if depth == 0 && begins && !character.is_whitespace() {
            found.push(word(&group[at..]));
            begins = false;
        }
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ => {}
        }
    }
    found.retain(|one| !one.is_empty());
    found
}

/// Whether a file is for tests alone.
fn is_of_tests(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        let name = name.trim_end_matches(".rs");
        ["tests", "mock", "fixtures", "load_test"].contains(&name)
    })
}

fn walk(folder: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, see),
            false => see(&path),
        }
    }
}

#[test]
fn layers_point_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut faults, mut seen) = (Vec::new(), 0);
    walk(&src, &mut |path| {
        let file = path.strip_prefix(&src).unwrap();
        if is_of_tests(file) {
            return;
        }
        let from = file.iter().next().unwrap().to_string_lossy();
        let from = from.trim_end_matches(".rs");
        if ["lib", "main"].contains(&from) {
            return;
        }
        seen += 1;
        let imports = imports(&code(&fs::read_to_string(path).unwrap()));
        let others = imports.iter().filter(|to| *to != from && *to != "fixtures");
        let wrong = others.filter_map(|to| fault(from, to));
        faults.extend(wrong.map(|fault| format!("src/{}: {fault}", file.display())));
    });
    assert!(seen > 100, "{seen} files");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn an_import_that_points_up_is_named() {
    let text = "use crate::{planner, api::{self, reason}};\n// crate::cli\nuse crate::job::view;\n\
                #[cfg(test)]\nmod tests { use crate::operator; }";
    let found = imports(&code(text));
    assert_eq!(found, ["api", "job", "planner"].map(str::to_owned).into());
    let of_cluster: Vec<_> = found.iter().filter_map(|to| fault("cluster", to)).collect();
    assert_eq!(of_cluster.len(), 2);
    assert!(of_cluster[0].starts_with("cluster (cluster state) imports job (job view)"));
    assert!(fault("novel", "api").is_some_and(|fault| fault.contains("no place")));
}

/// Whether code serves its callers in their order, so that those of a slow namespace delay all others.
fn is_unfair(code: &str) -> bool {
    code.contains("Semaphore") || code.contains("for_each_concurrent")
}

#[test]
fn reconcilers_share_places_by_namespace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reconcile");
    let (mut faults, mut seen) = (Vec::new(), 0);
    walk(&folder, &mut |path| {
        if !is_of_tests(path.strip_prefix(&folder).unwrap()) {
            seen += 1;
            if is_unfair(&code(&fs::read_to_string(path).unwrap())) {
                faults.push(format!("{}: use FairPlaces", path.display()));
            }
        }
    });
    assert!(seen > 40, "{seen} files");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(is_unfair("let places = Semaphore::new(8);"));
    assert!(!is_unfair("let places = FairPlaces::new(8);"));
}

/// The paths below `src` that the first cells of a table's rows name, such as `api` or `bounds*`.
fn rows(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names
        .filter_map(|name| Some(name.strip_prefix("src/")?.trim_end_matches(".rs")))
        .collect()
}

/// How many rows are about a module. One of a module within another does not count.
fn count_rows(rows: &[&str], module: &str) -> usize {
    let rows = rows.iter().map(|row| row.trim_end_matches('*'));
    rows.filter(|row| *row == module).count()
}

#[test]
fn each_module_has_one_row_in_the_architecture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&page);
    let modules = LAYERS.iter().flat_map(|(_, modules)| modules.iter());
    let faults: Vec<_> = modules
        .map(|module| (module, count_rows(&rows, module)))
        .filter(|(_, count)| *count != 1)
        .collect();
    assert!(faults.is_empty(), "rows of each module: {faults:?}");
    assert_eq!(count_rows(&["api/ledger", "api*"], "api"), 1);
}

/// Whether code names a module, other than to declare it.
fn names(code: &str, module: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.match_indices(module).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + module.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        is_word && !before.ends_with("mod ")
    })
}

/// The files of a crate that are not for tests alone, and their code.
fn product(crate_: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(crate_)
        .join("src");
    let mut files = Vec::new();
    walk(&folder, &mut |path| {
        let file = path.strip_prefix(&folder).unwrap();
        if !is_of_tests(file) {
            let text = fs::read_to_string(path).unwrap_or_default();
            files.push((Path::new(crate_).join("src").join(file), code(&text)));
        }
    });
    files
}

/// The name of the module that a file has.
fn stem(file: &Path) -> String {
    match file.file_stem().unwrap().to_string_lossy() {
        stem if stem == "mod" => stem_of_folder(file),
        stem => stem.into_owned(),
    }
}

fn stem_of_folder(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name);
    folder.unwrap().to_string_lossy().into_owned()
}

#[test]
fn each_module_has_a_caller() {
    let crates = [
        "",
        "crates/shed-core",
        "crates/shed-record",
        "crates/kubectl-shed",
        "crates/shed-sim",
    ];
    let all: Vec<_> = crates.into_iter().flat_map(product).collect();
    let is_checked = |file: &Path| file.starts_with("src") || file.starts_with("crates/shed-core");
    let mut faults = Vec::new();
    for (file, text) in all.iter().filter(|(file, _)| is_checked(file)) {
        let stem = stem(file);
        // The tests of three packages hold each ledger that is written against the invariants.
        let is_root = ["lib", "main", "invariants"].contains(&&*stem);
        // Methods alone are called by the type.
        let has_items = text.lines().any(|line| line.starts_with("pub"));
        let is_called = || {
            all.iter()
                .any(|(other, code)| other != file && names(code, &stem))
        };
        if has_items && !is_root && !is_called() {
            faults.push(file.display().to_string());
        }
    }
    assert!(all.len() > 400, "{} files", all.len());
    assert!(faults.is_empty(), "nothing in the product uses {faults:?}");
    assert!(!names(
        "pub mod incremental;\nlet incremental_x = 1;",
        "incremental"
    ));
    assert!(names("use super::incremental::Run;", "incremental"));
}
