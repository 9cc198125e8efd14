//! The operator's recording of a run of these tests, decided again by the simulator. run.sh runs this last,
//! so that the recording contains the other tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use shed_e2e::command::run_quietly;
use shed_e2e::jobs::{Job, shell, status};
use shed_e2e::scenario::{Company, Needs, scenario};

use crate::stragglers::with_straggler;
use crate::tasks::worker;

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("shed-recording-of-{name}")))
    }

    fn path(&self) -> Result<&str> {
        self.0.to_str().context("a path that is no text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed are left to the system.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The output of the simulator, an object per line. e2e/run.sh builds it next to this test's program.
async fn shed_sim(arguments: &[&str]) -> Result<Vec<Value>> {
    let this = std::env::current_exe()?;
    let folder = this.parent().and_then(Path::parent);
    let program = folder.context("no folder of programs")?.join("shed-sim");
    let program = program.to_str().context("its path is not text")?;
    let printed = run_quietly(program, &[arguments, &["--format", "json"]].concat()).await?;
    let lines = printed.lines().map(serde_json::from_str);
    lines
        .collect::<Result<Vec<Value>, _>>()
        .context("no JSON lines")
}

#[tokio::test]
async fn what_the_operator_recorded_is_decided_again_alike() {
    scenario(Needs::OperatorPod, Company::Shared, async |world| {
        let template = shell(&worker(40, 0.2, 2.0, ":"));
        let spec = with_straggler(&template, "Checkpoint");
        let ended = Job::submit(world, "recorded", spec)
            .await?
            .wait_complete()
            .await?;
        let clones = status(&ended).attempts.clones;
        ensure!(clones > 0, "nothing was cloned");
        let folder = Folder::new(&world.namespace);
        world.operator.copy_recording(&folder.0).await?;
        let recording = folder.path()?;

        let verdict = shed_sim(&["replay", recording]).await?;
        let verdict = verdict.first().context("no verdict")?;
        ensure!(verdict["passes"].as_u64() > Some(10), "{verdict}");
        ensure!(verdict["equal"] == verdict["passes"], "{verdict}");
        eprintln!("replayed: {verdict}");

        let jobs = shed_sim(&["replay", recording, "--policy", "hadoop-ns"]).await?;
        let name = format!("{}/recorded", world.namespace);
        let job = jobs.iter().find(|job| job["job"] == name.as_str());
        let job = job.with_context(|| format!("{name} is not among {jobs:?}"))?;
        ensure!(
            job["originals"] == 4 && job["originals_would_be"] == 4,
            "{job}"
        );
        ensure!(job["clones"].as_i64() >= Some(clones), "{job}");
        ensure!(job["clones_would_be"] == 0, "{job}");

        let run = ["run", "--recording", recording, "--slots", "12"];
        let rows = shed_sim(&run).await?;
        let row = rows.first().context("no row")?;
        ensure!(row["jobs"].as_u64() >= Some(1), "{row}");
        ensure!(row["jobs_completed"] == row["jobs"], "{row}");
        Ok(())
    })
    .await;
}
