//! The page of a bench, in Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::load::{LONGEST_MS, Rate, STORM_AFTER, STORM_ARRIVALS, TASKS};
use super::results::{Line, Loads, STORM_BAR_MS, WRITE_LIMIT_MS};
use super::spread::Sample;

/// File of the curves, next to the page.
pub const CURVES: &str = "bench-latency.svg";
/// File of the histogram, next to the page.
pub const HISTOGRAM: &str = "bench-latency-histogram.svg";
/// File of the loads, next to the page.
pub const DATA: &str = "bench-latency.json";

/// A latency: its name, and where it is in a line.
type Latency = (&'static str, fn(&Line) -> &Sample);

/// All of them; the apiserver's own writes come first.
pub const LATENCIES: [Latency; 5] = [
    ("apiserver's writes", |line| &line.writes),
    ("winner's end to delete", |line| &line.kills),
    ("straggler to clone", |line| &line.clones),
    ("ledger to clone", |line| &line.recorded_clones),
    ("new job to first pod", |line| &line.first_pods),
];

/// Whether kills are quick enough, where the apiserver is.
pub fn meets_bar(line: &Line) -> bool {
    let is_bound = line.storm > 0 || line.is_below_limit();
    !is_bound || line.kills.p99 <= line.bar()
}

/// A row per load.
pub fn table(lines: &BTreeMap<Rate, Line>) -> String {
    let mut text = String::from(
        "| jobs/s | jobs | pods | write p50 | write p99 | kills | kill p50 | kill p99 | bar | holds | first pod p50 | first pod p99 |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (rate, line) in lines {
        let holds = match (line.is_below_limit(), meets_bar(line)) {
            (false, _) => "beyond the limit",
            (true, true) => "yes",
            (true, false) => "no",
        };
        let _ = writeln!(
            text,
            "| {rate} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {holds} | {} | {} |",
            line.jobs,
            line.pods,
            ms(&line.writes, line.writes.p50),
            ms(&line.writes, line.writes.p99),
            line.kills.count,
            ms(&line.kills, line.kills.p50),
            ms(&line.kills, line.kills.p99),
            line.bar(),
            ms(&line.first_pods, line.first_pods.p50),
            ms(&line.first_pods, line.first_pods.p99),
        );
    }
    text
}

/// The load with a storm.
pub fn storm(line: &Line) -> String {
    format!(
        "## Kills under a storm of launches\n\n\
         Measured on {} at revision {}.\n\
         {} further jobs of {TASKS} tasks arrive at once in a namespace where {:.0} jobs with stragglers arrived in the {} s before. \
         None of the further jobs needs a clone or a delete. The p99 of kills is at most {STORM_BAR_MS:.0} ms. In milliseconds.\n\n\
         | kills | p50 | p99 | most | write p99 | pods | seconds |\n|---|---|---|---|---|---|---|\n\
         | {} | {} | {} | {} | {} | {} | {:.0} |\n\n",
        day(line),
        line.origin.revision,
        line.storm,
        line.rate.per_second() * STORM_ARRIVALS.as_secs_f64(),
        STORM_AFTER.as_secs(),
        line.kills.count,
        ms(&line.kills, line.kills.p50),
        ms(&line.kills, line.kills.p99),
        ms(&line.kills, line.kills.most),
        ms(&line.writes, line.writes.p99),
        line.pods,
        line.wall_seconds,
    )
}

/// When it ended.
fn day(line: &Line) -> &str {
    line.ended.split('T').next().unwrap_or_default()
}

/// A value of a sample; a dash if that is empty.
fn ms(sample: &Sample, value: f64) -> String {
    match sample.count {
        0 => "–".to_owned(),
        _ => format!("{value:.1}"),
    }
}

/// The whole page.
pub fn page(loads: &Loads, note: &str) -> String {
    let lines = &loads.steady;
    let mut text = head(lines, note);
    text.push_str(&table(lines));
    let _ = write!(
        text,
        "\n![p99 of each latency over the arrival rate of jobs]({CURVES})\n\n\
         ![Histogram of each latency at the highest load below the limit, or else at the lowest]({HISTOGRAM})\n\n"
    );
    text.push_str(&clone_table(lines));
    if let Some(line) = &loads.storm {
        text.push_str(&storm(line));
    }
    text.push_str(&all_quantiles(lines));
    text
}

fn head(lines: &BTreeMap<Rate, Line>, note: &str) -> String {
    let listed = |of: fn(&Line) -> &str| {
        let all: BTreeSet<&str> = lines.values().map(of).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let note = if note.is_empty() {
        String::new()
    } else {
        format!("{note}\n")
    };
    format!(
        "# How long shed takes to act\n\n\
         `make bench-latency` writes this page. [{DATA}]({DATA}) has every load with its histograms.\n\n\
         The steady loads were measured on {} at revision {}, with Kubernetes {}, on {}.\n{note}\n\
         The control plane is real, and kwok simulates the nodes and pods.\n\
         All components share the machine, so the apiserver slows down together with the load.\n\
         Jobs of {TASKS} tasks arrive at a steady rate. \
         An attempt runs for {} s, and one in ten is a straggler of 60 s. The job declares the usual duration as \
         `expectedTaskDuration`.\n\
         Every time is the apiserver's own, from its audit log, and includes the ramp at the start and the end of each load.\n\n\
         - **write**: from the receipt of a request that changes an object to its complete answer, for all clients. \
         It is the apiserver's own share of every latency.\n\
         - **kill**: from the complete answer to the status patch that says Succeeded, to the receipt of shed's delete of \
         another attempt of that task.\n\
         - **first pod**: from the complete answer to the create of a job, to the receipt of the create of its first pod.\n\
         - **clone**: from the moment at which the straggler is certain, to the receipt of the create of its clone.\n\n\
         **Certain** means: the longest usual duration has passed since the complete answer to the status patch that says \
         Running. From then on, by the distribution that the job declares, the attempt can only be a straggler. \
         It does not mean that a clone pays: that depends on the deadline and on free slots. \
         shed may clone earlier, on an estimate from other attempts of the job and of earlier jobs. Such clones are \
         counted, and have no latency. It may also wait until its own estimate says that a clone pays.\n\n\
         - **ledger to clone**: from the receipt of the last write of the job's ledger before a clone, which records it, to \
         the receipt of the clone's create. This is the part of the latency that no policy decides.\n\n\
         The bar holds below the load at which the p99 of writes exceeds {WRITE_LIMIT_MS} ms: there the p99 of kills is at most \
         two p99 of writes plus 20 ms.\n\n\
         ## Latencies by load\n\n\
         In milliseconds.\n\n",
        listed(day),
        listed(|line| &line.origin.revision),
        listed(|line| &line.origin.kubernetes),
        listed(|line| &line.origin.machine),
        LONGEST_MS / 1000,
    )
}

fn clone_table(lines: &BTreeMap<Rate, Line>) -> String {
    let mut text = String::from(
        "## Clones by load\n\n\
         Latencies are in milliseconds and of clones that were created after their straggler was certain.\n\n\
         | jobs/s | clones after | p50 | p99 | ledger to clone p50 | p99 | clones before | stragglers without a clone | attempts deleted before a winner |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for (rate, line) in lines {
        let _ = writeln!(
            text,
            "| {rate} | {} | {} | {} | {} | {} | {} | {} | {} |",
            line.clones.count,
            ms(&line.clones, line.clones.p50),
            ms(&line.clones, line.clones.p99),
            ms(&line.recorded_clones, line.recorded_clones.p50),
            ms(&line.recorded_clones, line.recorded_clones.p99),
            line.early_clones,
            line.without_clone,
            line.pruned,
        );
    }
    text.push('\n');
    text
}

fn all_quantiles(lines: &BTreeMap<Rate, Line>) -> String {
    let mut text = String::from(
        "## All quantiles\n\nIn milliseconds.\n\n\
         | jobs/s | latency | count | p50 | p90 | p99 | most |\n|---|---|---|---|---|---|---|\n",
    );
    for (rate, line) in lines {
        for (name, of) in LATENCIES {
            let own = of(line);
            let values = [own.p50, own.p90, own.p99, own.most];
            let cells = values.map(|value| ms(own, value)).join(" | ");
            let _ = writeln!(text, "| {rate} | {name} | {} | {cells} |", own.count);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::line;
    use super::*;

    #[test]
    fn a_page_tells_where_the_bar_holds_and_where_the_apiserver_is_the_limit() {
        let all = [
            line("0.5", 5.0, 25.0),
            line("1", 10.0, 41.0),
            line("2", 30.0, 500.0),
        ];
        let loads = Loads {
            steady: all.map(|line| (line.rate, line)).into(),
            storm: Some(Line {
                storm: 300,
                ..line("0.5", 30.0, 900.0)
            }),
        };
        let page = page(&loads, "Measured once.");
        for part in [
            "at revision abc, with Kubernetes v1.37.2",
            "Measured once.",
            "| 0.5 | 60 | 660 | 2.5 | 5.0 | 2 | 12.5 | 25.0 | 30.0 | yes | 7.5 | 15.0 |",
            "| 41.0 | 40.0 | no |",
            "| 500.0 | 80.0 | beyond the limit |",
            "Measured on 2030-01-01 at revision abc.\n300 further jobs",
            "| 2 | 450.0 | 900.0 | 900.0 | 30.0 | 660 | 70 |",
            "| 0.5 | straggler to clone | 0 | – | – | – | – |",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    #[test]
    fn the_bar_binds_below_the_limit_only() {
        assert!(meets_bar(&line("1", 10.0, 40.0)));
        assert!(!meets_bar(&line("1", 10.0, 41.0)));
        assert!(meets_bar(&line("1", 21.0, 9000.0)));
        let storm = |kill_p99| Line {
            storm: 300,
            ..line("1", 21.0, kill_p99)
        };
        assert!(meets_bar(&storm(2000.0)) && !meets_bar(&storm(2001.0)));
    }
}
