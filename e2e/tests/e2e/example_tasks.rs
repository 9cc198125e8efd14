//! The tasks in `examples/tasks` that a node here can run: in shell, and in Go and Rust as static programs. Each
//! first attempt is stopped halfway, and its retry continues.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use shed::api;
use shed_e2e::command::{repository, run_quietly};
use shed_e2e::jobs::{Job, assert_counts_balance, label, said, shell};
use shed_e2e::scenario::{Company, Needs, World, scenario};

/// Where pods see the programs.
const PROGRAMS: &str = "/programs";

/// A folder that the tasks see: the local nodes share this machine's file system.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("shed-tasks-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// Compiles a program with a command that ends with the names of the result and the source.
    async fn compile(&self, name: &str, command: &[&str], source: &str) -> Result<()> {
        let program = self.0.join(name).display().to_string();
        let source = repository().join("examples/tasks").join(source);
        let source = source.display().to_string();
        run_quietly("env", &[command, &["-o", &program, &source]].concat()).await?;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn example_tasks_report_and_resume_on_a_node() {
    scenario(Needs::ThisMachine, Company::Shared, async |world| {
        let folder = Folder::new()?;
        std::fs::copy(
            repository().join("examples/tasks/task.sh"),
            folder.0.join("shell"),
        )?;
        let go = ["CGO_ENABLED=0", "go", "build"];
        folder.compile("go", &go, "task.go").await?;
        let rust = [
            "rustc",
            "--edition=2024",
            "-Ctarget-feature=+crt-static",
            "-Copt-level=1",
        ];
        folder.compile("rust", &rust, "task.rs").await?;
        for (name, command) in [
            ("shell", format!("sh {PROGRAMS}/shell")),
            ("go", format!("{PROGRAMS}/go")),
            ("rust", format!("{PROGRAMS}/rust")),
        ] {
            resumes(world, &folder, name, &command)
                .await
                .with_context(|| format!("the task in {name}"))?;
        }
        Ok(())
    })
    .await;
}

async fn resumes(world: &World, folder: &Folder, name: &str, command: &str) -> Result<()> {
    let script = format!(
        r#"
export STEP=0.2
if [ "$SHED_ATTEMPT" = 0 ]; then
    {command} & sleep 5
    kill $!
    exit 1
fi
{command} > /dev/termination-log
"#
    );
    let mut template = shell(&script);
    template["spec"]["volumes"] = json!([{"name": "programs", "hostPath": {"path": folder.0}}]);
    template["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "programs", "mountPath": PROGRAMS, "readOnly": true}]);
    let spec = json!({
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": "Checkpoint",
        "speculation": {"mode": "Disabled"},
        "template": template,
    });
    let job = Job::submit(world, &format!("task-in-{name}"), spec).await?;
    let ended = job.wait_complete().await?;
    let pods = job.pods_ever();
    let retry = pods
        .iter()
        .find(|pod| label(pod, api::LABEL_KIND) == "retry")
        .context("no retry")?;
    let unit = said(retry).trim().strip_prefix("begins at unit ");
    let unit: u32 = unit
        .with_context(|| format!("the retry printed {:?}", said(retry)))?
        .parse()?;
    ensure!((1..40).contains(&unit), "the retry began at unit {unit}");
    assert_counts_balance(&ended);
    Ok(())
}
