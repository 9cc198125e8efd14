//! Three jobs as `kubectl describe` shows them: one that a clone saved, one that missed its deadline, and one that waits.
//! The planner and the reconciler run them on a cluster in memory whose time the test sets, so that the texts are
//! always the same. docs/reference/stories.md shows them.

mod cluster;
mod describe;

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use cluster::Cluster;

/// The variable that has the page written again instead of compared.
const REWRITE: &str = "SHED_WRITE_STORIES";

/// A task takes 250 s, and ten times as long on a slow node.
const TASK_SECONDS: f64 = 250.0;

const SPEC: &str = "completions: 4
deadline: {within: 10m}
progress: {httpGet: {port: 8080}}
expectedTaskDuration: {p50: 4m}
template: {spec: {containers: [{name: task, image: count, resources: {requests: {cpu: '1'}}}]}}
";

const HEAD: &str = "\
# Three jobs as kubectl describe shows them

<!-- Written by a unit test: SHED_WRITE_STORIES=1 cargo test -p shed --lib stories. Don't edit. -->

A job's events and conditions report what happened, what shed does, and what you can do.
This page shows the status and the events of three jobs, in the layout of `kubectl describe deadlinejob <name>`.
Each has four tasks of about four minutes and a deadline of ten minutes. The specification, the ledger and the [record](job-record.md) are left out.
Times are those since the job was submitted.

";

/// A job with a straggler, up to its end.
async fn saved() -> String {
    let mut cluster = Cluster::new(SPEC, 6, &["node-4"]);
    cluster.run_until(600).await;
    cluster.describe()
}

/// The same job, which only observes, until after its deadline.
async fn missed() -> String {
    let change = format!("{SPEC}speculation: {{mode: Observe}}\n");
    let mut cluster = Cluster::new(&change, 6, &["node-4"]);
    cluster.run_until(660).await;
    cluster.describe()
}

/// A job on a cluster with two slots, so that two of its tasks wait.
async fn waiting() -> String {
    let mut cluster = Cluster::new(SPEC, 2, &[]);
    cluster.run_until(120).await;
    cluster.describe()
}

/// The clones that the job counts with this change of its specification: started ones, and those of Observe.
async fn clones(change: &str, slow: &[&str]) -> (i64, i64) {
    let mut cluster = Cluster::new(&format!("{SPEC}{change}"), 8, slow);
    cluster.run_until(540).await;
    let status = cluster.status();
    let started = status.attempts.clones;
    let observed = status
        .observed
        .map_or(0, |observed| i64::from(observed.total_clones));
    (started, observed)
}

#[tokio::test]
async fn observe_counts_the_clones_that_enabled_starts() {
    let observe = "speculation: {mode: Observe}\n";
    for slow in [&["node-4"] as &[&str], &["node-1", "node-3"], &[]] {
        let number = i64::try_from(slow.len()).unwrap();
        assert_eq!(clones("", slow).await, (number, 0), "{slow:?}");
        assert_eq!(clones(observe, slow).await, (0, number), "{slow:?}");
    }
}

#[tokio::test]
async fn the_page_of_stories_shows_what_users_read() {
    let stories = [
        (
            "Saved by a clone",
            "Task 3 runs on a slow node. shed starts a clone on another node, and the clone finishes first.",
            saved().await,
        ),
        (
            "Missed in Observe mode",
            "The same job with `speculation.mode: Observe`: shed starts no clone. `observed` shows what Enabled would have \
             done.",
            missed().await,
        ),
        (
            "Waiting for capacity",
            "The cluster has two slots, so that two tasks wait. This is the job after two minutes.",
            waiting().await,
        ),
    ];
    let mut page = HEAD.to_owned();
    for (title, words, text) in stories {
        let _ = writeln!(page, "## {title}\n\n{words}\n\n```\n{text}```\n");
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/stories.md");
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shown == page,
        "docs/reference/stories.md differs from what users read. Run the test with {REWRITE}=1:\n{page}"
    );
}
