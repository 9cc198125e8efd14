//! The page of the bench, in Markdown.

use std::fmt::Write;

use super::figures::{Figures, Load, Moment, Run, Runs, Trouble};
use crate::bench::page::{Column, head, table};

/// Rows of a table of memory.
const ROWS: usize = 16;
/// Tasks for which the arithmetic is done.
const MILLION: f64 = 1e6;

/// The whole page.
pub fn page(name: &str, runs: &Runs, note: &str) -> String {
    let all: Vec<&Run> = runs.values().collect();
    let (title, data) = (
        "Many nodes and tasks under trouble",
        "every run with all its figures",
    );
    let mut text = head((title, name, data), "Measured", &all, note);
    text.push_str(SETUP);
    text.push_str(&results(&all));
    text.push_str(&wrong(&all));
    text.push_str(&overhead(runs));
    text.push_str(&memory(&all));
    text.push_str(&arithmetic(&all));
    text
}

const SETUP: &str = "\
Two replicas of shed reach the apiserver through a proxy, which also plays the tasks: they take 5 to 15 s, and one \
in twenty takes 240 s. One job in ten reports progress. Deadlines are 3 minutes, and jobs continue after them.

With trouble, all of this happens at once:

- One percent of all answers are 409, 429, 500 or 503 or never come. Some of those writes are carried out.
- Each watch breaks off after 5 to 30 s.
- The leader is killed every 30 s, and a replica starts in its place.
- Every 20 s one node in fifty is lost for 70 s. Every second time its object is deleted; else it becomes \
unreachable, and its pods are evicted after 10 s.

Every state that the apiserver went through is checked against I1 to I6, I8, I9, I10 and I13 of \
[faults.md](faults.md). I11 and I12 are left out: a launch may wait while the operator is away.

";

fn results(runs: &[&Run]) -> String {
    let table = table(
        &[
            ("nodes", &|run: &&Run| run.load.nodes.to_string()),
            ("jobs x tasks", &|run| {
                format!("{} x {}", run.load.jobs, run.load.tasks)
            }),
            ("jobs per s", &|run| run.figures.rate.to_string()),
            ("trouble", &|run| run.load.trouble.name().to_owned()),
            ("jobs complete", &|run| run.figures.complete.to_string()),
            ("wall s", &|run| format!("{:.0}", run.figures.wall_seconds)),
            ("attempts", &|run| run.figures.attempts.to_string()),
            ("states checked", &|run| run.figures.states.to_string()),
            ("violations", &|run| run.figures.broken.len().to_string()),
            ("leaders killed", &|run| run.figures.killed.to_string()),
            ("nodes lost", &|run| run.figures.lost_nodes.to_string()),
            ("largest object KiB", &|run| {
                format!("{:.1}", run.figures.largest_object as f64 / 1024.0)
            }),
            ("peak memory MiB", &|run| run.figures.peak().to_string()),
        ],
        runs.iter().copied(),
    );
    format!("## Results\n\n{table}")
}

/// Where runs stopped, and what was broken.
fn wrong(runs: &[&Run]) -> String {
    let mut text = String::new();
    for run in runs {
        if let Some(stopped) = &run.figures.stopped {
            let _ = writeln!(text, "- {}: it stopped. {stopped}", run.load);
        }
        for broken in &run.figures.broken {
            let _ = writeln!(text, "- {}: {broken}", run.load);
        }
    }
    match text.is_empty() {
        true => "\nEvery run went to its end, and nothing was broken.\n\n".to_owned(),
        false => format!("\n{text}\n"),
    }
}

/// A figure's name and where it comes from.
type Metric = (&'static str, fn(&Figures) -> f64);

/// Figures that trouble increases.
const METRICS: [Metric; 6] = [
    ("wall time", |own| own.wall_seconds),
    ("attempts", |own| own.attempts as f64),
    ("requests", |own| own.requests as f64),
    ("writes", |own| own.writes as f64),
    ("operator CPU", |own| own.cpu_seconds),
    ("apiserver CPU", |own| own.apiserver_cpu_seconds),
];

/// Runs with trouble, and those without it of the same size.
type Pair<'r> = (&'r Run, &'r Run);

fn overhead(runs: &Runs) -> String {
    let with = runs.values().filter(|run| run.load.trouble == Trouble::All);
    let pair = |with: &'_ Run| {
        let trouble = Trouble::None;
        let load = Load {
            trouble,
            ..with.load
        };
        runs.get(&load)
    };
    let pairs = with.filter_map(|with| Some((with, pair(with)?)));
    let ratios = METRICS.map(|(name, of)| {
        let ratio = move |(with, without): &Pair<'_>| match of(&without.figures) {
            base if base > 0.0 => format!("{:.2}", of(&with.figures) / base),
            _ => "–".to_owned(),
        };
        (name, ratio)
    });
    let mut columns: Vec<Column<'_, Pair<'_>>> = vec![("size", &|(with, _)| with.load.size())];
    for (name, ratio) in &ratios {
        columns.push((name, ratio));
    }
    let table = table(&columns, pairs);
    format!(
        "## Overhead of trouble\n\n\
         Each figure of the run with trouble, divided by that of the run without.\n\n{table}\n"
    )
}

fn memory(runs: &[&Run]) -> String {
    let mut text = String::from("## Memory over time\n\nIn MiB, of the replica with most of it.\n");
    for run in runs {
        let all = &run.figures.memory;
        let table = table(
            &[
                ("s", &|moment: &&Moment| format!("{:.0}", moment.seconds)),
                ("live attempts", &|moment| moment.live.to_string()),
                ("jobs complete", &|moment| moment.complete.to_string()),
                ("operator", &|moment| moment.operator.to_string()),
                ("apiserver", &|moment| moment.apiserver.to_string()),
                ("etcd", &|moment| moment.etcd.to_string()),
            ],
            all.iter().step_by(all.len().div_ceil(ROWS).max(1)),
        );
        let _ = write!(text, "\n### {}\n\n{table}", run.load);
    }
    text.push('\n');
    text
}

/// From the largest run that went to its end without trouble.
fn arithmetic(runs: &[&Run]) -> String {
    let calm = runs.iter().filter(|run| run.load.trouble == Trouble::None);
    let clean = calm.filter(|run| run.figures.is_clean());
    let Some(run) = clean.max_by_key(|run| run.load.all_tasks()) else {
        return String::new();
    };
    let own = &run.figures;
    let tasks = f64::from(run.load.all_tasks());
    let factor = MILLION / tasks;
    format!(
        "## A million tasks\n\n\
         From the run of {} without trouble, in proportion to tasks:\n\n\
         | figure | measured | per task | a million tasks |\n|---|---|---|---|\n\
         | writes of shed | {} | {:.2} | {:.1} million |\n\
         | CPU of shed, s | {:.1} | {:.5} | {:.0} |\n\
         | CPU of the apiserver, s | {:.1} | {:.5} | {:.0} |\n\n\
         Memory follows live attempts and jobs, not tasks: {} MiB at the peak here.\n",
        run.load.size(),
        own.writes,
        own.writes as f64 / tasks,
        own.writes as f64 * factor / 1e6,
        own.cpu_seconds,
        own.cpu_seconds / tasks,
        own.cpu_seconds * factor,
        own.apiserver_cpu_seconds,
        own.apiserver_cpu_seconds / tasks,
        own.apiserver_cpu_seconds * factor,
        own.peak(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::line;

    fn run(trouble: Trouble, wall: f64, broken: &[&str]) -> Run {
        let load = Load {
            nodes: 50,
            jobs: 20,
            tasks: 10,
            trouble,
        };
        let figures = Figures {
            rate: 0.5,
            wall_seconds: wall,
            writes: 800,
            broken: broken.iter().map(ToString::to_string).collect(),
            ..Figures::default()
        };
        line(load, figures)
    }

    fn page_of(all: [Run; 2]) -> String {
        let runs = all.map(|run| (run.load, run)).into();
        page("bench-large", &runs, "")
    }

    #[test]
    fn a_page_has_the_overhead_of_trouble_and_what_was_broken() {
        let mut with = run(Trouble::All, 90.0, &["I2: too many"]);
        with.figures.stopped = Some("no memory".to_owned());
        let page = page_of([run(Trouble::None, 60.0, &[]), with]);
        for part in [
            "at revision abc, with Kubernetes v1.37.2",
            "| 50 nodes, 20 x 10 tasks | 1.50 | – | – | 1.00 | – | – |",
            "| 50 | 20 x 10 | 0.5 | with trouble |",
            "with trouble: I2: too many",
            "it stopped. no memory",
            "| writes of shed | 800 | 4.00 | 4.0 million |",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    #[test]
    fn a_page_without_violations_says_so() {
        let all = [run(Trouble::None, 60.0, &[]), run(Trouble::All, 90.0, &[])];
        assert!(page_of(all).contains("nothing was broken"));
    }
}
