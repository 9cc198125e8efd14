//! Publishing once while everything dies: each task has three live copies when it asks for leave, the
//! leading operator is killed at random instants, and a node stands still until tasks that run on it
//! were won elsewhere.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use shed::api;
use shed_e2e::campaign::draw;
use shed_e2e::frozen::Frozen;
use shed_e2e::jobs::{
    Job, assert_counts_balance, is_running, is_true, label, node, shell, status, summary,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};

/// Two clones of every task as soon as slots are free.
pub const POLICY: &str = "dollymp{max_clones=2}";
const COPIES: usize = 3;
/// Seconds between two kills, and between a thaw and the next freeze: least, and how many more.
const BETWEEN_KILLS: (u64, u64) = (15, 30);
const BETWEEN_FREEZES: (u64, u64) = (10, 20);
/// A node is no longer frozen than this, won tasks or not: after 300 s its pods would be evicted.
const FROZEN_AT_MOST: Duration = Duration::from_secs(75);

/// How much is done: `SHED_FENCE_TASKS=200` is the whole campaign.
struct Size {
    tasks: usize,
    at_once: usize,
    patience: Duration,
}

impl Size {
    fn chosen() -> Result<Self> {
        let tasks = match std::env::var("SHED_FENCE_TASKS") {
            Ok(text) => text.parse().context("SHED_FENCE_TASKS is no number")?,
            Err(_) => 12,
        };
        ensure!(tasks > 0, "SHED_FENCE_TASKS must be at least 1");
        Ok(Self {
            tasks,
            // Three pods each, on a machine of two cores.
            at_once: if tasks > 12 { 16 } else { 6 },
            patience: Duration::from_secs(300 + 20 * tasks as u64),
        })
    }
}

/// Waits until three copies of the task have started, works, asks, and writes down the publication's
/// beginning and its end.
const SCRIPT: &str = r#"
: > "/out/started.$JOB_COMPLETION_INDEX-$SHED_ATTEMPT"
copies() { set -- /out/started."$JOB_COMPLETION_INDEX"-*; echo $#; }
for second in $(seq 120); do
    [ "$(copies)" -lt 3 ] || break
    sleep 1
done
sleep 5
export COPIES=$(copies)
exec "$SHED_BIN" agent commit -- sh -c '
    about="$JOB_COMPLETION_INDEX $SHED_ATTEMPT $SHED_FENCE_TOKEN $COPIES"
    echo "begun $about" >> /out/log
    sleep 0.5
    echo "done $about" >> /out/log'
"#;

/// One line of what was published.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    is_end: bool,
    task: String,
    attempt: String,
    token: u64,
    copies: usize,
}

impl Line {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let is_end = match words.next()? {
            "begun" => false,
            "done" => true,
            _ => return None,
        };
        Some(Self {
            is_end,
            task: words.next()?.to_owned(),
            attempt: words.next()?.to_owned(),
            token: words.next()?.parse().ok()?,
            copies: words.next()?.parse().ok()?,
        })
    }
}

/// The store: a folder that all nodes see.
struct Store(PathBuf);

impl Store {
    fn new(name: &str) -> Result<Self> {
        let store = Self(std::env::temp_dir().join(format!("shed-{name}")));
        std::fs::create_dir_all(&store.0)?;
        std::fs::write(store.0.join("log"), "")?;
        Ok(store)
    }

    fn lines(&self) -> Result<Vec<Line>> {
        let text = std::fs::read_to_string(self.0.join("log"))?;
        let read = |line: &str| Line::read(line).with_context(|| format!("in the log: {line}"));
        text.lines().map(read).collect()
    }

    /// The attempt that published each task.
    fn published(&self) -> Result<BTreeMap<String, String>> {
        let lines = self.lines()?.into_iter();
        let ends = lines.filter(|line| line.is_end);
        Ok(ends.map(|line| (line.task, line.attempt)).collect())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The acts on the job.
#[derive(Default)]
struct Tally {
    kills: Cell<u64>,
    freezes: Cell<u64>,
    /// Tasks won elsewhere while a copy of them stood still.
    won_elsewhere: Cell<usize>,
}

fn add<T: Copy + std::ops::Add<Output = T>>(to: &Cell<T>, more: T) {
    to.set(to.get() + more);
}

fn drawn(seed: u64, count: u64, (least, more): (u64, u64)) -> Duration {
    Duration::from_millis(1000 * least + draw(seed, count) % (1000 * more))
}

async fn kill_operators(world: &World, tally: &Tally) -> Result<()> {
    loop {
        tokio::time::sleep(drawn(1, tally.kills.get(), BETWEEN_KILLS)).await;
        // None may lead for a while, or the leader's pod be just coming.
        if world.operator.kill_and_take_away().await.is_ok() {
            add(&tally.kills, 1);
        }
    }
}

/// A node with several running tasks without a published result, and these tasks; not the one that
/// all replicas of the operator are on.
async fn choose(
    world: &World,
    running: &[Pod],
    store: &Store,
) -> Result<Option<(String, BTreeSet<String>)>> {
    let operators = world.operator.nodes().await?;
    let published = store.published()?;
    let mut tasks: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for pod in running {
        let task = label(pod, api::LABEL_INDEX);
        if !published.contains_key(task) {
            tasks.entry(node(pod)).or_default().insert(task.to_owned());
        }
    }
    tasks.retain(|node, tasks| tasks.len() >= 3 && operators.iter().any(|other| other != node));
    let fullest = tasks.into_iter().max_by_key(|(_, tasks)| tasks.len());
    Ok(fullest.map(|(node, tasks)| (node.to_owned(), tasks)))
}

/// Of these tasks, those that an attempt on another node has published.
fn elsewhere(
    job: &Job<'_>,
    store: &Store,
    tasks: &BTreeSet<String>,
    frozen: &str,
) -> Result<usize> {
    let published = store.published()?;
    let pods = job.pods_ever();
    let is_elsewhere = |task: &&String| {
        pods.iter().any(|pod| {
            label(pod, api::LABEL_INDEX) == task.as_str()
                && published.get(*task).map(String::as_str) == Some(label(pod, api::LABEL_ATTEMPT))
                && node(pod) != frozen
        })
    };
    Ok(tasks.iter().filter(is_elsewhere).count())
}

async fn freeze_nodes(world: &World, job: &Job<'_>, store: &Store, tally: &Tally) -> Result<()> {
    loop {
        let mut running = world.api::<Pod>().list(&Default::default()).await?.items;
        running.retain(is_running);
        let Some((node, tasks)) = choose(world, &running, store).await? else {
            tokio::time::sleep(Duration::from_millis(500)).await;
            continue;
        };
        let frozen = Frozen::freeze(&world.cluster, &node).await?;
        let since = Instant::now();
        add(&tally.freezes, 1);
        // A task whose leave is with a copy that stands still waits for the thaw.
        while elsewhere(job, store, &tasks, &node)? < tasks.len()
            && since.elapsed() < FROZEN_AT_MOST
        {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        add(&tally.won_elsewhere, elsewhere(job, store, &tasks, &node)?);
        drop(frozen);
        tokio::time::sleep(drawn(2, tally.freezes.get(), BETWEEN_FREEZES)).await;
    }
}

fn spec(size: &Size, store: &Store) -> Value {
    let mut template = shell(SCRIPT);
    template["spec"]["volumes"] = json!([{"name": "out", "hostPath": {"path": store.0}}]);
    template["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "out", "mountPath": "/out"}]);
    json!({
        "completions": size.tasks,
        "parallelism": size.at_once,
        "deadline": {"within": "3h"},
        "idempotency": "Fenced",
        "progress": {"file": {}, "periodSeconds": 2},
        "template": template,
    })
}

/// Each task was begun once and ended once, by the same attempt, and no token was given twice.
fn check(lines: &[Line], tasks: usize) -> Result<()> {
    let mut by_task: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        by_task.entry(&line.task).or_default().push(line);
    }
    ensure!(
        by_task.len() == tasks,
        "{} of {tasks} were published",
        by_task.len()
    );
    for (task, lines) in &by_task {
        let [begun, end] = lines[..] else {
            bail!("task {task}: {lines:?}");
        };
        ensure!(!begun.is_end && end.is_end, "task {task}: {lines:?}");
        ensure!(begun.attempt == end.attempt, "task {task}: {lines:?}");
    }
    let tokens: BTreeSet<u64> = lines.iter().map(|line| line.token).collect();
    ensure!(
        tokens.len() == tasks,
        "{} tokens for {tasks} tasks",
        tokens.len()
    );
    Ok(())
}

async fn go(world: &World, size: &Size) -> Result<()> {
    let (store, tally) = (Store::new(&world.namespace)?, Tally::default());
    let job = Job::submit(world, "published", spec(size, &store)).await?;
    let complete = tokio::select! {
        ended = job.wait("to be complete", size.patience, |job| {
            is_true(job, api::COMPLETE) || is_true(job, api::FAILED)
        }) => ended?,
        failed = kill_operators(world, &tally) => bail!("killing operators: {failed:?}"),
        failed = freeze_nodes(world, &job, &store, &tally) => bail!("freezing nodes: {failed:?}"),
    };
    ensure!(
        is_true(&complete, api::COMPLETE),
        "failed: {}",
        summary(&complete)
    );
    let lines = store.lines()?;
    let asked_by_three = lines
        .iter()
        .filter(|line| line.is_end && line.copies >= COPIES);
    let asked_by_three = asked_by_three.count();
    eprintln!(
        "{} tasks, {} attempts, {} tasks with {COPIES} live copies at the question, operator killed {} \
         times, a node frozen {} times, {} tasks won elsewhere meanwhile, {} publications",
        size.tasks,
        job.pods_ever().len(),
        asked_by_three,
        tally.kills.get(),
        tally.freezes.get(),
        tally.won_elsewhere.get(),
        lines.iter().filter(|line| line.is_end).count(),
    );
    check(&lines, size.tasks)?;
    assert_eq!(usize::try_from(status(&complete).succeeded)?, size.tasks);
    assert_counts_balance(&complete);
    ensure!(
        asked_by_three * 4 >= size.tasks * 3,
        "few tasks had three copies"
    );
    ensure!(tally.kills.get() > 0, "no operator was killed");
    ensure!(
        tally.won_elsewhere.get() > 0,
        "no task of a frozen node was won elsewhere"
    );
    Ok(())
}

#[tokio::test]
async fn three_live_copies_publish_once_whatever_dies() {
    scenario(
        Needs::OperatorPod,
        Company::AloneUnder(POLICY),
        async |world| {
            let size = Size::chosen()?;
            go(world, &size).await
        },
    )
    .await;
}
