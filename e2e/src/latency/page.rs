//! The page of the bench, in Markdown.

use super::load::{LONGEST_MS, Load, STORM_AFTER, STORM_ARRIVALS, TASKS};
use super::quantiles::Sample;
use super::timeline::Latencies;
use crate::bench::page::{head, table};
use crate::bench::results::{Line, Lines};

/// Beyond this p99 of its own writes, in milliseconds, the apiserver is the limit.
pub const WRITE_LIMIT_MS: f64 = 20.0;
/// What a kill may take in addition to two writes, in milliseconds.
const KILL_ALLOWANCE_MS: f64 = 20.0;
/// Most that the p99 of kills may be while a storm of launches lasts, at any speed of the apiserver.
const STORM_BAR_MS: f64 = 2000.0;

/// A latency: its name, and its sample.
type Latency = (&'static str, fn(&Latencies) -> &Sample);

/// All of them; the apiserver's own writes come first.
pub const LATENCIES: [Latency; 5] = [
    ("apiserver's writes", |found| &found.writes),
    ("winner's end to delete", |found| &found.kills),
    ("straggler to clone", |found| &found.clones),
    ("ledger to clone", |found| &found.recorded_clones),
    ("new job to first pod", |found| &found.first_pods),
];

/// One load with its latencies.
type Measured = Line<Load, Latencies>;

impl Latencies {
    /// Whether the apiserver is quick enough for the bar to hold.
    pub fn is_below_limit(&self) -> bool {
        self.writes.p99 <= WRITE_LIMIT_MS
    }
}

impl Measured {
    /// Whether the apiserver is quick enough for the bar to hold.
    pub fn is_below_limit(&self) -> bool {
        self.figures.is_below_limit()
    }

    /// Most that the p99 of kills may be, in milliseconds.
    fn bar(&self) -> f64 {
        match self.load.storm {
            0 => 2.0 * self.figures.writes.p99 + KILL_ALLOWANCE_MS,
            _ => STORM_BAR_MS,
        }
    }

    /// Whether kills are quick enough, where the apiserver is.
    pub fn meets_bar(&self) -> bool {
        let is_bound = self.load.storm > 0 || self.is_below_limit();
        !is_bound || self.figures.kills.p99 <= self.bar()
    }

    fn holds(&self) -> &'static str {
        match (self.is_below_limit(), self.meets_bar()) {
            (false, _) => "beyond the limit",
            (true, true) => "yes",
            (true, false) => "no",
        }
    }
}

/// The loads without a storm, in rising order.
pub fn steady(lines: &Lines<Load, Latencies>) -> impl DoubleEndedIterator<Item = &Measured> {
    lines.values().filter(|line| line.load.storm == 0)
}

/// The whole page.
pub fn page(name: &str, lines: &Lines<Load, Latencies>, note: &str) -> String {
    let all: Vec<&Measured> = steady(lines).collect();
    let (title, data) = (
        "How long shed takes to act",
        "every load with its histograms",
    );
    let measured = "The steady loads were measured";
    let mut text = head((title, name, data), measured, &all, note);
    text.push_str(&setup());
    text.push_str(&latency_table(&all));
    text.push_str(&format!(
        "\n![Histogram of each latency at the highest load below the limit, or else at the lowest]({})\n\n",
        histogram_of(name)
    ));
    text.push_str(&clone_table(&all));
    if let Some(line) = lines.values().rfind(|line| line.load.storm > 0) {
        text.push_str(&storm(line));
    }
    text.push_str(&all_quantiles(&all));
    text
}

/// File of the histogram, next to the page.
pub fn histogram_of(name: &str) -> String {
    format!("{name}-histogram.svg")
}

fn setup() -> String {
    format!(
        "All components share the machine, so the apiserver slows down together with the load.\n\
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
        LONGEST_MS / 1000,
    )
}

/// A value of a sample; a dash if that is empty.
fn ms(sample: &Sample, of: fn(&Sample) -> f64) -> String {
    match sample.count {
        0 => "–".to_owned(),
        _ => format!("{:.1}", of(sample)),
    }
}

fn p50(sample: &Sample) -> String {
    ms(sample, |own| own.p50)
}

fn p99(sample: &Sample) -> String {
    ms(sample, |own| own.p99)
}

fn latency_table(lines: &[&Measured]) -> String {
    table(
        &[
            ("jobs/s", &|line: &&Measured| line.load.rate.to_string()),
            ("jobs", &|line| line.figures.jobs.to_string()),
            ("pods", &|line| line.figures.pods.to_string()),
            ("write p50", &|line| p50(&line.figures.writes)),
            ("write p99", &|line| p99(&line.figures.writes)),
            ("kills", &|line| line.figures.kills.count.to_string()),
            ("kill p50", &|line| p50(&line.figures.kills)),
            ("kill p99", &|line| p99(&line.figures.kills)),
            ("bar", &|line| format!("{:.1}", line.bar())),
            ("holds", &|line| line.holds().to_owned()),
            ("first pod p50", &|line| p50(&line.figures.first_pods)),
            ("first pod p99", &|line| p99(&line.figures.first_pods)),
        ],
        lines.iter().copied(),
    )
}

fn clone_table(lines: &[&Measured]) -> String {
    let table = table(
        &[
            ("jobs/s", &|line: &&Measured| line.load.rate.to_string()),
            ("clones after", &|line| {
                line.figures.clones.count.to_string()
            }),
            ("p50", &|line| p50(&line.figures.clones)),
            ("p99", &|line| p99(&line.figures.clones)),
            ("ledger to clone p50", &|line| {
                p50(&line.figures.recorded_clones)
            }),
            ("p99", &|line| p99(&line.figures.recorded_clones)),
            ("clones before", &|line| {
                line.figures.early_clones.to_string()
            }),
            ("stragglers without a clone", &|line| {
                line.figures.without_clone.to_string()
            }),
            ("attempts deleted before a winner", &|line| {
                line.figures.pruned.to_string()
            }),
        ],
        lines.iter().copied(),
    );
    format!(
        "## Clones by load\n\n\
         Latencies are in milliseconds and of clones that were created after their straggler was certain.\n\n\
         {table}\n"
    )
}

/// The load with a storm.
fn storm(line: &Measured) -> String {
    let table = table(
        &[
            ("kills", &|line: &&Measured| {
                line.figures.kills.count.to_string()
            }),
            ("p50", &|line| p50(&line.figures.kills)),
            ("p99", &|line| p99(&line.figures.kills)),
            ("most", &|line| ms(&line.figures.kills, |own| own.most)),
            ("write p99", &|line| p99(&line.figures.writes)),
            ("pods", &|line| line.figures.pods.to_string()),
            ("seconds", &|line| {
                format!("{:.0}", line.figures.wall_seconds)
            }),
        ],
        [line],
    );
    format!(
        "## Kills under a storm of launches\n\n\
         Measured on {} at revision {}.\n\
         {} further jobs of {TASKS} tasks arrive at once in a namespace where {:.0} jobs with stragglers arrived in the {} s before. \
         None of the further jobs needs a clone or a delete. The p99 of kills is at most {STORM_BAR_MS:.0} ms. In milliseconds.\n\n\
         {table}\n",
        line.day(),
        line.origin.revision,
        line.load.storm,
        line.load.rate.per_second() * STORM_ARRIVALS.as_secs_f64(),
        STORM_AFTER.as_secs(),
    )
}

fn all_quantiles(lines: &[&Measured]) -> String {
    type Row<'l> = (&'l Measured, Latency);
    fn sample<'l>((line, (_, of)): &Row<'l>) -> &'l Sample {
        of(&line.figures)
    }
    let rows = lines.iter().copied();
    let rows = rows.flat_map(|line| LATENCIES.map(|latency| (line, latency)));
    let table = table(
        &[
            ("jobs/s", &|row: &Row<'_>| row.0.load.rate.to_string()),
            ("latency", &|(_, (name, _))| (*name).to_owned()),
            ("count", &|row| sample(row).count.to_string()),
            ("p50", &|row| p50(sample(row))),
            ("p90", &|row| ms(sample(row), |own| own.p90)),
            ("p99", &|row| p99(sample(row))),
            ("most", &|row| ms(sample(row), |own| own.most)),
        ],
        rows,
    );
    format!("## All quantiles\n\nIn milliseconds.\n\n{table}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::results::tests::line as line_of;

    /// A load whose writes and kills have these p99.
    pub(in super::super) fn line(
        rate: &str,
        storm: u32,
        write_p99: f64,
        kill_p99: f64,
    ) -> Measured {
        let sample = |p99: f64| Sample::of(vec![p99 / 2.0, p99]);
        let rate = rate.parse().unwrap();
        let found = Latencies {
            writes: sample(write_p99),
            kills: sample(kill_p99),
            first_pods: sample(15.0),
            jobs: 60,
            pods: 660,
            wall_seconds: 70.0,
            ..Latencies::default()
        };
        line_of(Load { storm, rate }, found)
    }

    #[test]
    fn a_page_shows_the_rates_within_the_bar_and_beyond_the_limit() {
        let all = [
            line("0.5", 0, 5.0, 25.0),
            line("1", 0, 10.0, 41.0),
            line("2", 0, 30.0, 500.0),
            line("0.5", 300, 30.0, 900.0),
        ];
        let lines = all.map(|line| (line.load, line)).into();
        let page = page("bench-latency", &lines, "Measured once.");
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
        assert!((line("1", 0, 10.0, 41.0).bar() - 40.0).abs() < 1e-9);
        assert!(line("1", 0, 10.0, 40.0).meets_bar());
        assert!(!line("1", 0, 10.0, 41.0).meets_bar());
        assert!(line("1", 0, 21.0, 9000.0).meets_bar());
        let storm = |kill_p99| line("1", 300, 21.0, kill_p99);
        assert!(storm(2000.0).meets_bar() && !storm(2001.0).meets_bar());
    }
}
