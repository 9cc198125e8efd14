//! Holds that the modules of this crate import each other one way only: cluster state, job view, planner,
//! reconciler. `make lint` runs this by `.ci/layers`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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
    ("specification", &["validate", "pod_names", "adopt"]),
    (
        "cluster state",
        &[
            "conditions",
            "deadline_totals",
            "completion_history",
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
    ("answers to people", &["answers", "leader_api", "page"]),
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
        (None, _) => Some(format!("{from} has no place in src/layers.rs")),
        (_, None) => Some(format!("{to} has no place in src/layers.rs")),
    }
}

/// The code of a file without comments and without its tests at the end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
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
        ["tests", "mock", "fixtures", "layers", "load_test"].contains(&name)
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
        let others = imports.iter().filter(|to| *to != from);
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
