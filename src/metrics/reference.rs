//! The reference of all metrics, as a page of the documentation. `shed metrics` prints it.

use std::fmt::Write as _;

use crate::registrar::Listed;

const HEAD: &str = r#"# Metrics

<!-- Generated from the operator's list of metrics by e2e/generate.sh. Don't edit. -->

The operator serves these metrics at `/metrics`, in the text format of Prometheus.
Metrics of jobs and attempts come from the leader alone. Other replicas have no series of jobs, and their counters stand still.
Counters begin at 0 when a process starts, so use `rate` and `increase`. The [totals of deadlines](#totals-of-deadlines) do not.
[Secure metrics](../how-to/secure-the-network.md#secure-the-metrics) shows how to serve them over TLS.

- `job_namespace`, `job_name` and `job_kind` (`DeadlineJob`, `Job`, or `WatchedJob` for a Job that shed
  [only watches](../how-to/observe-first.md#watch-only)) name the job. Counts of unfinished jobs include watched ones. `job_class` is its class, and is absent without one.
  For a Job of a CronJob without the label `shed.dev/class` it is the name of the CronJob. `namespace` and `job` are set by the scrape.
- Series of single jobs exist for the jobs most at risk, 500 unless `--metrics-jobs` sets another number.
  Namespaces share them: the job most at risk of each namespace comes first, then the second one of each.
  A job that was shown stays until it is a tenth beyond that number. The gauges with the label `at_most` count all jobs.
- The series `shed_workflow_*` are about whole [runs of workflows](../how-to/workflows.md) with a deadline, with the same number and the same division
  between namespaces. `stage` is the class of the open stage: of stages at the same time the one most at risk. Between two stages a run has no
  series, so use `max_over_time` in alerts. PoCD and slack are known once 3 earlier runs of the class have ended.
  A Job that shed only watches has none of these series.
- Gauges with the label `at_most` count the unfinished jobs at the moment of the scrape whose figure is at most that number.
  `shed_jobs_pocd{at_most="0.9"}` is the number of jobs with a PoCD of at most 0.9, and `at_most="+Inf"` counts all jobs with a PoCD.
  For a quantile, copy the label: `histogram_quantile(0.1, label_replace(shed_jobs_pocd, "le", "$1", "at_most", "(.*)"))`.
  The 200 namespaces with the most unfinished jobs have series of their own, and `other` is the sum of the rest.

## Totals of deadlines

`shed_deadlines_met_total`, `shed_deadlines_missed_total` and `shed_deadlines_failed_total` count each ended job with a deadline once.

| the job | counts as |
|---|---|
| completed at or before its deadline, by the end time of its last task | met |
| completed later (`onMiss: Continue`) | missed |
| was stopped at its deadline (`onMiss: Fail`), or failed after it | missed |
| failed before its deadline for another reason, such as `backoffLimit` | failed |
| has no deadline, was refused (`InvalidSpec`), or was deleted before it ended | not counted |

- A job counts when it ends. A late job that continues counts when it is complete. Until then the alert `ShedJobAtRisk` fires.
- The totals survive a failover. Only the leader shows them, once it has read the [stored state](ledger.md#what-shed-has-learned) and the
  list of jobs. To count across failovers, remove the label of the replica before `increase`, as the rule `shed:deadlines_met:total` of the
  [alerts](alerts.md) does.
- No deletion waits for the totals. The outcome of a job that exists is in its ledger. When the job is deleted, by shed, a user or
  the garbage collector, its outcome is stored within 30 s.
- **What a crash may lose:** outcomes of jobs that were deleted in the last 30 s before the leader crashed, or while no leader ran.
  The job's own status and the outcomes of jobs that still exist are never lost.
  A total that is then lower looks like a counter reset to Prometheus. If you need each outcome, set `ttlSecondsAfterFinished` to a
  minute or more, so that a scrape sees it before the job is gone.
- The first 200 namespaces, and the first 8 classes of each, have series of their own. The rest is `other`.

"#;

/// The page.
pub fn reference(listed: &[Listed]) -> String {
    let mut page = HEAD.to_owned();
    for (title, prefix) in [
        ("Metrics of shed", "shed_"),
        ("Metrics of the process", "process_"),
    ] {
        // A `String` refuses nothing.
        let _ = writeln!(
            page,
            "## {title}\n\n| metric | type | labels | meaning |\n|---|---|---|---|"
        );
        for metric in listed
            .iter()
            .filter(|metric| metric.name.starts_with(prefix))
        {
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                metric.name,
                metric.kind,
                labels.join(", "),
                metric.help
            );
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn the_reference_has_each_metric_once() {
        let metrics = Metrics::new().unwrap();
        let page = reference(metrics.listed());
        for metric in metrics.listed() {
            let row = format!("\n| `{}` | {} |", metric.name, metric.kind);
            assert_eq!(page.matches(&row).count(), 1, "{row}");
        }
        assert_eq!(page.matches("\n| `").count(), metrics.listed().len());
    }
}
