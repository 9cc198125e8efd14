//! Tasks whose input is divided between attempts (`resume: Range`).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, SegmentEntry};
use shed_e2e::jobs::{Job, is_running, is_true, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};

const TASK: &str = include_str!("../../../examples/range/task.sh");
/// Real text: each task gets this many lines of it.
const TEXT: &str = include_str!("../../../LICENSE");
const LINES: usize = 60;
const TASKS: usize = 3;
/// With some 20 s of work per task, and attempts that die.
const PATIENCE: Duration = Duration::from_secs(240);
const KILLS: u64 = 8;

/// A folder that the tasks see: the local nodes share this machine's file system.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let folder = Self(std::env::temp_dir().join(format!("shed-{name}")));
        std::fs::create_dir_all(folder.0.join("out"))?;
        for task in 0..TASKS {
            std::fs::write(folder.0.join(format!("in.{task}")), lines(task, 0, LINES))?;
        }
        Ok(folder)
    }

    fn part(&self, part: &SegmentEntry) -> Result<String> {
        let name = format!("{}.{}-{}", part.task, part.start, part.end);
        let path = self.0.join("out").join(name);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Some lines of a task's input, numbered so that no two are alike.
fn lines(task: usize, from: usize, to: usize) -> String {
    let text: Vec<&str> = TEXT.lines().collect();
    let line = |unit: usize| {
        format!(
            "{task}/{unit} {}\n",
            text[(task * LINES + unit) % text.len()]
        )
    };
    (from..to).map(line).collect()
}

/// The first attempt of task 0 would take minutes.
fn spec(folder: &Folder) -> Value {
    let choice = r#"
export INPUT=/data/in.$JOB_COMPLETION_INDEX OUT=/data/out STEP=0.3
if [ "$JOB_COMPLETION_INDEX-$SHED_RANGE_START-$SHED_ATTEMPT" = 0-0-0 ]; then STEP=3; fi
"#;
    let mut template = shell(&format!("{choice}{TASK}"));
    template["spec"]["volumes"] = json!([{"name": "data", "hostPath": {"path": folder.0}}]);
    template["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    json!({
        "completions": TASKS,
        "deadline": {"within": "80s"},
        "onMiss": "Continue",
        "backoffLimitPerIndex": 20,
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": "Range",
        "template": template,
    })
}

fn segments(job: &DeadlineJob) -> Vec<SegmentEntry> {
    let ledger = status(job).ledger.unwrap_or_default();
    ledger.segments.values().cloned().collect()
}

/// The segments of a task that an attempt owns, in the order of its input.
fn parts_of(job: &DeadlineJob, task: u32) -> Vec<SegmentEntry> {
    let mut parts = segments(job);
    parts.retain(|part| part.task == task && !part.dropped);
    parts.sort_by_key(|part| part.start);
    if parts.is_empty() {
        let end = LINES as u64;
        parts.push(SegmentEntry {
            index: task,
            task,
            start: 0,
            end,
            total: end,
            winner: Some(0),
            dropped: false,
        });
    }
    parts
}

/// Deletes running attempts at instants that a seed draws.
async fn kill_some(world: &World, job: &Job<'_>) -> Result<()> {
    let pods: Api<Pod> = world.api();
    let at_once = DeleteParams::default().grace_period(0);
    let mut seed: u64 = 0x5eed;
    for _ in 0..KILLS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        tokio::time::sleep(Duration::from_millis(400 + (seed >> 33) % 2500)).await;
        if is_true(&job.api.get(&job.name).await?, api::COMPLETE) {
            return Ok(());
        }
        let mut running = pods.list(&Default::default()).await?.items;
        running.retain(is_running);
        let drawn = usize::try_from(seed >> 40)? % running.len().max(1);
        if let Some(pod) = running.get(drawn) {
            // It may have ended meanwhile.
            drop(pods.delete(&pod.name_any(), &at_once).await);
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_unit_is_in_exactly_one_winning_part_whoever_dies_when() {
    scenario(Needs::ThisMachine, Company::Shared, async |world| {
        let folder = Folder::new(&world.namespace)?;
        let job = Job::submit(world, "divided", spec(&folder)).await?;
        job.wait("a task to be divided", PATIENCE, |job| {
            !segments(job).is_empty()
        })
        .await?;
        kill_some(world, &job).await?;
        let complete = job
            .wait("to be complete", PATIENCE, |job| {
                is_true(job, api::COMPLETE)
            })
            .await?;
        assert_eq!(status(&complete).succeeded, 3);
        for task in 0..TASKS {
            let mut unit = 0;
            let mut result = String::new();
            for part in parts_of(&complete, u32::try_from(task)?) {
                assert_eq!(part.start, unit, "task {task}: the parts tile its input");
                ensure!(part.winner.is_some(), "{part:?} has no winner");
                result.push_str(&folder.part(&part)?);
                unit = part.end;
            }
            assert_eq!(unit, LINES as u64, "task {task}");
            assert_eq!(result, lines(task, 0, LINES), "task {task}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_original_stops_at_its_new_end_and_a_clone_does_the_rest() {
    scenario(Needs::ThisMachine, Company::Shared, async |world| {
        let folder = Folder::new(&world.namespace)?;
        let job = Job::submit(world, "shared", spec(&folder)).await?;
        let complete = job
            .wait("to be complete", PATIENCE, |job| {
                is_true(job, api::COMPLETE)
            })
            .await?;
        let attempts = status(&complete).attempts;
        assert_eq!((attempts.failed, attempts.disrupted), (0, 0));
        let parts = parts_of(&complete, 0);
        ensure!(parts.len() > 1, "task 0 was not divided: {parts:?}");
        assert_eq!(
            parts[0].winner,
            Some(0),
            "the original did its part: {parts:?}"
        );
        assert_eq!(attempts.won, i64::try_from(parts.len() + TASKS - 1)?);
        Ok(())
    })
    .await;
}

/// The original of task 0 does not heed where it is to stop, and the attempt that takes the rest fails.
#[tokio::test]
async fn an_original_that_does_a_failed_segment_completes_its_task() {
    scenario(Needs::ThisMachine, Company::Shared, async |world| {
        let folder = Folder::new(&world.namespace)?;
        let mut spec = spec(&folder);
        let choice = r#"
export INPUT=/data/in.$JOB_COMPLETION_INDEX OUT=/data/out STEP=0.3
if [ "$SHED_RANGE_START" -gt 0 ]; then exit 1; fi
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then STEP=1.5 SHED_STOP_FILE=/nowhere; fi
"#;
        let script = format!("{choice}{TASK}");
        spec["template"]["spec"]["containers"][0]["command"] = json!(["sh", "-c", script]);
        spec["backoffLimitPerIndex"] = json!(0);
        let job = Job::submit(world, "beyond", spec).await?;
        job.wait("what is behind to fail", PATIENCE, |job| {
            status(job).failed_indexes == "0"
        })
        .await?;
        let complete = job
            .wait("to be complete", PATIENCE, |job| {
                is_true(job, api::COMPLETE)
            })
            .await?;
        assert_eq!(status(&complete).failed_indexes, "");
        let parts = parts_of(&complete, 0);
        let whole = (parts.len(), parts[0].start, parts[0].end);
        assert_eq!(whole, (1, 0, LINES as u64), "{parts:?}");
        ensure!(status(&complete).attempts.failed > 0, "nothing failed");
        Ok(())
    })
    .await;
}
