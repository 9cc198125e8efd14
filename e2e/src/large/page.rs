//! The page of a bench, in Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::figures::{Figures, Line, Lines, Moment, Size};
use super::run::Trouble;

/// File of the runs, next to the page.
pub const DATA: &str = "bench-large.json";
/// Rows of a table of memory.
const ROWS: usize = 16;
/// Tasks for which the arithmetic is done.
const MILLION: f64 = 1e6;

/// The whole page.
pub fn page(lines: &Lines) -> String {
    let mut text = head(lines);
    text.push_str(&tables(lines));
    text.push_str(&memory(lines));
    text.push_str(&arithmetic(lines));
    text
}

fn head(lines: &Lines) -> String {
    let listed = |of: fn(&Line) -> &str| {
        let all: BTreeSet<&str> = lines.values().map(of).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    format!(
        "# Many nodes and tasks under trouble\n\n\
         `make bench-large` writes this page. [{DATA}]({DATA}) has every run with all its figures.\n\n\
         Measured on {} at revision {}, with Kubernetes {}, on {}.\n\n\
         The control plane is real, and kwok simulates the nodes and pods.\n\
         Two replicas of shed reach the apiserver through a proxy, which also plays the tasks: they take 5 to 15 s, and one \
         in twenty takes 240 s. One job in ten reports progress. Deadlines are 3 minutes, and jobs continue after them.\n\n\
         With trouble, all of this happens at once:\n\n\
         - One percent of all answers are 409, 429, 500 or 503 or never come. Some of those writes are carried out.\n\
         - Each watch breaks off after 5 to 30 s.\n\
         - The leader is killed every 30 s, and a replica starts in its place.\n\
         - Every 20 s one node in fifty is lost for 70 s. Every second time its object is deleted; else it becomes \
         unreachable, and its pods are evicted after 10 s.\n\n\
         Every state that the apiserver went through is checked against I1 to I6, I8, I9, I10 and I13 of \
         [faults.md](faults.md). I11 and I12 are left out: a launch may wait while the operator is away.\n\n",
        listed(|line| line.ended.split('T').next().unwrap_or_default()),
        listed(|line| &line.origin.revision),
        listed(|line| &line.origin.kubernetes),
        listed(|line| &line.origin.machine),
    )
}

/// Results, and the overhead of trouble.
pub fn tables(lines: &Lines) -> String {
    let mut text = String::from(
        "## Results\n\n\
         | nodes | jobs x tasks | jobs per s | trouble | jobs complete | wall s | attempts | states checked | violations | leaders killed | nodes lost | largest object KiB | peak memory MiB |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for ((size, trouble), line) in lines {
        let own = &line.figures;
        let _ = writeln!(
            text,
            "| {} | {} x {} | {} | {} | {} | {:.0} | {} | {} | {} | {} | {} | {:.1} | {} |",
            size.nodes,
            size.jobs,
            size.tasks,
            line.rate,
            trouble.name(),
            own.complete,
            own.wall_seconds,
            own.attempts,
            own.states,
            own.broken.len(),
            own.killed,
            own.lost_nodes,
            own.largest_object as f64 / 1024.0,
            own.peak(),
        );
    }
    text.push_str(&wrong(lines));
    text.push_str(&overhead(lines));
    text
}

/// Where runs stopped, and what was broken.
fn wrong(lines: &Lines) -> String {
    let mut text = String::new();
    for ((size, trouble), line) in lines {
        let own = &line.figures;
        let name = format!("{}, {}", size.name(), trouble.name());
        if let Some(stopped) = &own.stopped {
            let _ = writeln!(text, "- {name}: it stopped. {stopped}");
        }
        for broken in &own.broken {
            let _ = writeln!(text, "- {name}: {broken}");
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

fn overhead(lines: &Lines) -> String {
    let mut text = String::from(
        "## Overhead of trouble\n\nEach figure of the run with trouble, divided by that of the run without.\n\n",
    );
    let names = METRICS.map(|(name, _)| name).join(" | ");
    let _ = writeln!(
        text,
        "| size | {names} |\n|---|{}",
        "---|".repeat(METRICS.len())
    );
    for (size, with) in pairs(lines, Trouble::All) {
        let Some(without) = lines.get(&(size, Trouble::None)) else {
            continue;
        };
        let ratio = |of: fn(&Figures) -> f64| {
            let base = of(&without.figures);
            if base > 0.0 {
                format!("{:.2}", of(&with.figures) / base)
            } else {
                "–".to_owned()
            }
        };
        let cells = METRICS.map(|(_, of)| ratio(of)).join(" | ");
        let _ = writeln!(text, "| {} | {cells} |", size.name());
    }
    text.push('\n');
    text
}

fn pairs(lines: &Lines, trouble: Trouble) -> impl Iterator<Item = (Size, &Line)> {
    let own = lines.iter().filter(move |((_, own), _)| *own == trouble);
    own.map(|((size, _), line)| (*size, line))
}

fn memory(lines: &Lines) -> String {
    let mut text = String::from("## Memory over time\n\nIn MiB, of the replica with most of it.\n");
    for ((size, trouble), line) in lines {
        let _ = write!(
            text,
            "\n### {}, {}\n\n| s | live attempts | jobs complete | operator | apiserver | etcd |\n|---|---|---|---|---|---|\n",
            size.name(),
            trouble.name()
        );
        let all = &line.figures.memory;
        for moment in all.iter().step_by(all.len().div_ceil(ROWS).max(1)) {
            let Moment {
                seconds,
                live,
                complete,
                operator,
                apiserver,
                etcd,
            } = moment;
            let _ = writeln!(
                text,
                "| {seconds:.0} | {live} | {complete} | {operator} | {apiserver} | {etcd} |"
            );
        }
    }
    text.push('\n');
    text
}

/// From the largest run that went to its end without trouble.
fn arithmetic(lines: &Lines) -> String {
    let mut clean = pairs(lines, Trouble::None).filter(|(_, line)| line.figures.is_clean());
    let Some((size, line)) = clean.by_ref().max_by_key(|(size, _)| size.all_tasks()) else {
        return String::new();
    };
    let own = &line.figures;
    let tasks = f64::from(size.all_tasks());
    let factor = MILLION / tasks;
    format!(
        "## A million tasks\n\n\
         From the run of {} without trouble, in proportion to tasks:\n\n\
         | figure | measured | per task | a million tasks |\n|---|---|---|---|\n\
         | writes of shed | {} | {:.2} | {:.1} million |\n\
         | CPU of shed, s | {:.1} | {:.5} | {:.0} |\n\
         | CPU of the apiserver, s | {:.1} | {:.5} | {:.0} |\n\n\
         Memory follows live attempts and jobs, not tasks: {} MiB at the peak here.\n",
        size.name(),
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
    use crate::bench_scale::results::Origin;

    fn line(trouble: Trouble, wall: f64, broken: &[&str]) -> Line {
        Line {
            size: Size {
                nodes: 50,
                jobs: 20,
                tasks: 10,
            },
            trouble,
            rate: 0.5,
            origin: Origin {
                revision: "abc".to_owned(),
                operator: "1234".to_owned(),
                kubernetes: "v1.37.2".to_owned(),
                machine: "2 processors".to_owned(),
            },
            ended: "2030-01-01T00:00:00Z".to_owned(),
            figures: Figures {
                wall_seconds: wall,
                writes: 800,
                broken: broken.iter().map(ToString::to_string).collect(),
                ..Figures::default()
            },
        }
    }

    fn lines(all: [Line; 2]) -> Lines {
        all.map(|line| ((line.size, line.trouble), line)).into()
    }

    #[test]
    fn a_page_has_the_overhead_of_trouble_and_what_was_broken() {
        let mut with = line(Trouble::All, 90.0, &["I2: too many"]);
        with.figures.stopped = Some("no memory".to_owned());
        let page = page(&lines([line(Trouble::None, 60.0, &[]), with]));
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
        let all = [
            line(Trouble::None, 60.0, &[]),
            line(Trouble::All, 90.0, &[]),
        ];
        assert!(page(&lines(all)).contains("nothing was broken"));
    }
}
