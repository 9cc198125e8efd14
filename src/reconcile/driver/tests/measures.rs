//! The figures that reconciles leave in the metrics.

use super::*;

#[tokio::test]
async fn a_won_race_is_measured_with_its_slots_its_stop_and_its_slack() {
    let (api, process) = race().await;
    api.exit((0, 1), 0, clock::now());
    process.look(&api).await.unwrap();
    api.kill_deleted();
    process.look(&api).await.unwrap();
    let page = process.context.metrics.page().unwrap();
    for series in [
        r#"shed_attempts_finished_total{kind="clone",outcome="won"} 1"#,
        r#"shed_attempts_finished_total{kind="original",outcome="superseded"} 1"#,
        r#"shed_attempt_slot_seconds_total{kind="clone",outcome="won"} "#,
        r#"shed_attempt_slot_seconds_total{kind="original",outcome="superseded"} "#,
        "shed_attempt_stop_duration_seconds_count 1",
        "shed_clone_wins_total 1",
        // Ten minutes after its submission is its deadline, and it is a minute old.
        r#"shed_job_completion_slack_seconds_bucket{le="300"} 0"#,
        r#"shed_job_completion_slack_seconds_bucket{le="900"} 1"#,
        "shed_job_completion_lateness_seconds_count 0",
        "shed_reconciles_running 0",
        "shed_reconciles_waiting 0",
    ] {
        assert!(page.contains(series), "{series}\n{page}");
    }
}
