//! How progress reaches the operator, and what of it is believed.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use shed::api;
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, is_true, label, said, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::tasks::worker;

/// The resumed attempt writes its resume point into its termination message.
const REPORT_RESUME: &str = r#"
if [ "$SHED_ATTEMPT" != 0 ]; then
    cat "$SHED_RESUME_FILE" > /dev/termination-log
    exit 0
fi
"#;

#[tokio::test]
async fn hostile_reports_are_refused_and_the_last_good_one_stays() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let before = refused(world).await?;
        let script = format!(
            r#"
{REPORT_RESUME}
publish() {{ mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"; sleep 3; }}
echo '{{"progress":0.25,"checkpoint":"a quarter"}}' > "$SHED_PROGRESS_FILE.new"; publish
for bad in NaN -1 7 nonsense 3/0; do
    echo "$bad" > "$SHED_PROGRESS_FILE.new"; publish
done
yes 0.5 | head -c 10000000 > "$SHED_PROGRESS_FILE.new"; publish
exit 1
"#
        );
        let spec = json!({
            "progress": {"file": {}, "periodSeconds": 1},
            "resume": "Checkpoint",
            "speculation": {"mode": "Disabled"},
            "template": shell(&script),
        });
        let job = Job::submit(world, "hostile", spec).await?;
        let ended = job.wait_complete().await?;
        assert_eq!(resumed_at(&job)?, (0.25, "a quarter".to_owned()));
        let attempts = status(&ended).attempts;
        assert_eq!((attempts.failed, attempts.retries, attempts.won), (1, 1, 1));
        assert_counts_balance(&ended);
        let after = refused(world).await?;
        ensure!(
            after - before >= 6.0,
            "{} refusals were counted for 6 bad reports",
            after - before
        );
        Ok(())
    })
    .await;
}

async fn refused(world: &World) -> Result<f64> {
    world
        .operator
        .metric("shed_progress_reports_refused_total", &[])
        .await
}

/// Progress and checkpoint that the retry was given.
fn resumed_at(job: &Job<'_>) -> Result<(f64, String)> {
    let pods = job.pods_ever();
    let retry = pods
        .iter()
        .find(|pod| label(pod, api::LABEL_KIND) == "retry")
        .context("no retry")?;
    let point: Value = serde_json::from_str(said(retry))
        .with_context(|| format!("the retry's resume file: {:?}", said(retry)))?;
    let progress = point["progress"].as_f64().context("no progress")?;
    let checkpoint = point["checkpoint"].as_str().context("no checkpoint")?;
    Ok((progress, checkpoint.to_owned()))
}

#[tokio::test]
async fn a_task_may_serve_its_progress_itself() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let script = format!(
            r#"
{REPORT_RESUME}
mkdir -p /tmp/served
echo '{{"progress":"2/5","checkpoint":"two of five"}}' > /tmp/served/state
httpd -p 8081 -h /tmp/served
sleep 6
exit 1
"#
        );
        let spec = json!({
            "progress": {"httpGet": {"port": 8081, "path": "/state"}, "periodSeconds": 1},
            "resume": "Checkpoint",
            "speculation": {"mode": "Disabled"},
            "template": shell(&script),
        });
        let job = Job::submit(world, "serves", spec).await?;
        let ended = job.wait_complete().await?;
        assert_eq!(resumed_at(&job)?, (0.4, "two of five".to_owned()));
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_metric_of_the_task_is_progress() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        // A page as a client library writes it, longer than a report may be.
        let script = r##"
mkdir -p /tmp/served
filler=$(head -c 6000 /dev/zero | tr '\0' x)
page() {
    echo "# HELP rows_done_total Rows that are done."
    echo "# TYPE rows_done_total counter"
    echo "rows_done_total{table=\"a\"} $1"
    echo "# TYPE rows gauge"
    echo "rows 60"
    echo "other{of=\"$filler\"} 7"
}
page 0 > /tmp/served/metrics
httpd -p 8083 -h /tmp/served
for row in $(seq 1 60); do
    sleep 0.5
    page "$row" > /tmp/served/new
    mv /tmp/served/new /tmp/served/metrics
done
"##;
        let metric = json!({"port": 8083, "name": "rows_done_total", "total": "rows"});
        let spec = json!({
            "completions": 2,
            "progress": {"metric": metric, "periodSeconds": 1},
            "template": shell(script),
        });
        let job = Job::submit(world, "metered", spec).await?;
        // Nothing but its reports tells how long it takes.
        let reported = job.wait("a PoCD while it runs", SOON, shows_pocd).await?;
        let ends = status(&reported).estimated_completion_time;
        ensure!(ends.is_some(), "no expected end");
        job.wait_complete().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn attempts_that_do_not_answer_are_reported() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let spec = json!({
            "progress": {"httpGet": {"port": 8082}, "periodSeconds": 1},
            "speculation": {"mode": "Disabled"},
            "template": shell("sleep 300"),
        });
        let job = Job::submit(world, "silent", spec).await?;
        job.wait_true(api::PROGRESS_UNREACHABLE, api::reason::NO_RESPONSE, SOON)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pocd_is_reported_while_a_job_runs_and_its_series_go_with_it() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let spec = json!({
            "completions": 2,
            "progress": {"file": {}, "periodSeconds": 1},
            "template": shell(&worker(30, 0.5, 0.5, ":")),
        });
        let job = Job::submit(world, "reported", spec).await?;
        let reported = job.wait("a PoCD while it runs", SOON, shows_pocd).await?;
        let pocd = status(&reported).pocd.map_or(0.0, |pocd| pocd.value());
        ensure!((0.0..=1.0).contains(&pocd), "PoCD {pocd}");
        wait_pocd_series(world, true).await?;
        job.wait_complete().await?;
        wait_pocd_series(world, false).await
    })
    .await;
}

/// At its end a job's PoCD is known without any estimate.
pub fn shows_pocd(job: &api::DeadlineJob) -> bool {
    status(job).pocd.is_some() && !is_true(job, api::COMPLETE)
}

/// Waits until a job of the scenario's namespace has a series for its PoCD, or none has.
async fn wait_pocd_series(world: &World, there: bool) -> Result<()> {
    let what = format!("a series of a PoCD there: {there}");
    let label = format!("job_namespace=\"{}\"", world.namespace);
    wait::until(&what, SOON, || async {
        let page = world.operator.get("/metrics").await?;
        let is_wanted = |line: &str| line.starts_with("shed_job_pocd{") && line.contains(&label);
        let found = page.lines().any(is_wanted);
        Ok(Seen::when(found == there, || format!("there: {found}")))
    })
    .await
}
