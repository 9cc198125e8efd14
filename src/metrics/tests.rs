use std::collections::BTreeSet;

use super::*;
use crate::registrar::MetricType;

pub(super) fn address(namespace: &str, name: &str) -> JobAddress {
    JobAddress {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn labels(name: &str) -> JobLabels {
    JobLabels {
        name: name.into(),
        kind: "DeadlineJob",
        class: "".into(),
    }
}

#[test]
fn the_page_has_the_build_the_policy_and_the_ages_of_watches() {
    let metrics = Metrics::new().unwrap();
    metrics
        .planning
        .show_policy(&shed_core::policy::Policy::default());
    let page = metrics.page().unwrap();
    assert!(page.contains("shed_build_info{version=\""), "{page}");
    let policy = "shed_policy_info{policy=\"shed-prime\",order=\"lst\"} 1";
    let turned = "shed_policy_info{order=\"lst\",policy=\"shed-prime\"} 1";
    assert!(page.contains(policy) || page.contains(turned), "{page}");
    assert!(!page.contains("shed_watch_age_seconds{"));
}

/// The rules of `promtool check metrics`, and labels that a scrape sets itself.
#[test]
fn names_types_and_labels_follow_the_rules_of_prometheus() {
    let metrics = Metrics::new().unwrap();
    for metric in metrics.listed() {
        let name = metric.name.as_str();
        let is_counter = metric.kind == MetricType::Counter;
        assert_eq!(is_counter, name.ends_with("_total"), "{name}");
        for suffix in ["_count", "_sum", "_bucket", "_info_total"] {
            assert!(!name.ends_with(suffix), "{name}");
        }
        for part in name.split('_') {
            let banned = [
                "ms",
                "milliseconds",
                "minutes",
                "hours",
                "kib",
                "mib",
                "percent",
                "counter",
                "gauge",
                "histogram",
            ];
            assert!(!banned.contains(&part), "{name}");
        }
        assert!(name.starts_with("shed_") || name.starts_with("process_"));
        assert!(!metric.help.is_empty(), "{name}");
        for label in &metric.labels {
            let own = [
                "job",
                "namespace",
                "instance",
                "pod",
                "container",
                "le",
                "quantile",
            ];
            assert!(!own.contains(&label.as_str()), "{name}: {label}");
        }
    }
}

/// Prometheus sees no increase in a series that begins at 1.
#[test]
fn series_of_rare_faults_begin_at_0() {
    let page = Metrics::new().unwrap().page().unwrap();
    for line in [
        r#"shed_plan_check_refusals_total{reason="capacity"} 0"#,
        r#"shed_reconcile_crashes_total{reason="panicked"} 0"#,
        r#"shed_pods_refused_total{reason="QuotaExceeded"} 0"#,
        r#"shed_pods_disowned_total{reason="owner"} 0"#,
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn the_page_shows_nothing_that_is_not_listed() {
    let metrics = Metrics::new().unwrap();
    let page = metrics.page().unwrap();
    let shown: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(str::to_owned)
        .collect();
    let listed = metrics.listed().iter();
    let listed: BTreeSet<_> = listed
        .map(|metric| format!("{} {}", metric.name, metric.kind))
        .collect();
    assert!(shown.is_subset(&listed), "{:?}", shown.difference(&listed));
    assert!(shown.contains("process_resident_memory_bytes gauge"));
    assert!(shown.contains("shed_leader gauge"), "{page}");
}
