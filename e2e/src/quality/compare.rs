//! The cluster compared with the simulator, and where they differ.

use serde::{Deserialize, Serialize};
use shed_sim::stats::{self, half_width_95};

use super::run_result::{JobResult, RunResult, Story, mean};
use super::simulated::Conditions;
use crate::demo::attempt::median;
use crate::table::table;

/// One policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    pub policy: String,
    pub real: RunResult,
}

/// One policy compared with the simulator.
pub struct Compared {
    pub policy: String,
    pub real: RunResult,
    /// With the same draws and the nodes in the same order.
    pub paired: RunResult,
    /// With other draws, and the slow node at each place of the order; under conditions that are
    /// named.
    pub others: Vec<(&'static str, Vec<RunResult>)>,
}

/// The cluster's delays that the simulator needs as input: medians over all attempts of all replays, in
/// seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delays {
    /// From an attempt's launch to the start of its work.
    pub launch: f64,
    /// From the end of a winner's work until its slot is observed free.
    pub release: f64,
    /// From a kill until the slot is free; 0 without kills.
    pub kill: f64,
}

impl Delays {
    /// Measures them; absent if no attempt worked.
    pub fn of<'c>(all: impl Iterator<Item = &'c RunResult> + Clone) -> Option<Self> {
        let attempts = || all.clone().flat_map(|came| &came.attempts);
        let winners = || attempts().filter(|ran| ran.won);
        let kills = attempts().filter(|ran| !ran.won);
        Some(Self {
            kill: median(kills.filter_map(|ran| Some(ran.freed - ran.killed?))).unwrap_or(0.0),
            launch: median(attempts().filter_map(|ran| Some(ran.started? - ran.launched)))?,
            release: median(winners().filter_map(|ran| Some(ran.freed - ran.ended?)))?,
        })
    }
}

/// Deadlines, clones, slot-seconds and flowtimes, a block of lines per policy.
pub fn figures(all: &[Compared]) -> String {
    let head = [
        "policy",
        "deadlines met",
        "clones",
        "slot-seconds",
        "mean flowtime s",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for compared in all {
        let of = compared.real.jobs.len();
        let what = |what: &str| format!("{}, {what}", compared.policy);
        rows.push(row(what("real"), &compared.real, of));
        rows.push(row(what("simulated, the same draws"), &compared.paired, of));
        for (conditions, all) in &compared.others {
            let mean = format!("simulated, mean of {}{conditions}", all.len());
            rows.push(row_of_means(what(&mean), all));
        }
    }
    table(&rows)
}

fn row(what: String, came: &RunResult, of: usize) -> Vec<String> {
    vec![
        what,
        format!("{} of {of}", came.met()),
        came.clones().to_string(),
        format!("{:.0}", came.slot_seconds()),
        format!("{:.1}", came.flowtime()),
    ]
}

fn row_of_means(what: String, all: &[RunResult]) -> Vec<String> {
    let cell = |figure: fn(&RunResult) -> f64, digits| {
        let values: Vec<f64> = all.iter().map(figure).collect();
        interval(&values, digits)
    };
    vec![
        what,
        cell(|came| came.met() as f64, 1),
        cell(|came| came.clones() as f64, 1),
        cell(RunResult::slot_seconds, 0),
        cell(RunResult::flowtime, 1),
    ]
}

/// Mean and half of its interval of 95 %.
fn interval(values: &[f64], digits: usize) -> String {
    let half = half_width_95(values).map_or_else(String::new, |half| format!(" ± {half:.digits$}"));
    format!("{:.digits$}{half}", stats::mean(values))
}

/// Where the mean time to the end of a job's last task went, really and in the simulator.
pub fn parts(all: &[Compared]) -> String {
    let head = [
        "mean seconds",
        "until launched",
        "until rescued",
        "starting",
        "working",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for compared in all {
        for (what, came) in [("real", &compared.real), ("simulated", &compared.paired)] {
            let last = |job| came.story(job, came.last_task(job)?);
            let stories: Vec<Story> = (0..came.jobs.len()).filter_map(last).collect();
            let mut cells = vec![format!("{}, {what}", compared.policy)];
            for part in 0..4 {
                let seconds = mean(stories.iter().map(|story| story.parts()[part]));
                cells.push(
                    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}")),
                );
            }
            rows.push(cells);
        }
    }
    table(&rows)
}

/// Each job that was in time on one side only, the time to its deadline, and what made the difference.
pub fn differences(all: &[Compared], conditions: &Conditions) -> String {
    let mut lines = String::new();
    for compared in all {
        let jobs = compared.real.jobs.iter().zip(&compared.paired.jobs);
        for (job, (real, paired)) in jobs
            .enumerate()
            .filter(|(_, (real, paired))| real.met != paired.met)
        {
            let cause = cause(compared, job, conditions);
            lines.push_str(&format!(
                "  {}, job {job} of {:.0} s: really {}, simulated {}:\n    {}\n",
                compared.policy,
                real.within,
                verdict(real),
                verdict(paired),
                cause.unwrap_or_else(|| "it was not completed".to_owned()),
            ));
        }
    }
    if lines.is_empty() {
        "  Each job was in time on both sides, or on none.\n".to_owned()
    } else {
        lines
    }
}

fn verdict(came: &JobResult) -> String {
    let word = if came.met { "in time" } else { "late" };
    match came.flowtime() {
        Some(seconds) => format!("{word} after {seconds:.1} s"),
        None => word.to_owned(),
    }
}

/// The main cause of the delay of the last task on the late side: the largest difference among the four parts.
fn cause(compared: &Compared, job: usize, conditions: &Conditions) -> Option<String> {
    let real = &compared.real.jobs[job];
    if real.met != (real.flowtime()? <= real.within) {
        return Some(
            "by the task's own clock it was the other way: containers' times have whole seconds"
                .to_owned(),
        );
    }
    let (late, other, where_late) = if real.met {
        (&compared.paired, &compared.real, "simulated")
    } else {
        (&compared.real, &compared.paired, "really")
    };
    let task = late.last_task(job)?;
    let (late, other) = (late.story(job, task)?, other.story(job, task)?);
    let (late_parts, other_parts) = (late.parts(), other.parts());
    let by: [f64; 4] = std::array::from_fn(|part| late_parts[part] - other_parts[part]);
    let largest = (0..4).max_by(|&a, &b| by[a].total_cmp(&by[b]))?;
    let is_slow = |story: &Story| story.first_node.as_ref() == Some(&conditions.slow);
    let placed = match (is_slow(&late), is_slow(&other)) {
        (true, false) => ", begun on the slow node there only",
        (false, true) => ", though begun on the slow node on the other side",
        _ => "",
    };
    let what = [
        "waited for a launch",
        "was rescued later",
        "took longer to start",
        "worked longer",
    ][largest];
    let seconds = by[largest];
    Some(format!(
        "task {task} {where_late} {what}: {seconds:+.1} s of {:+.1} s{placed}",
        by.iter().sum::<f64>()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::run_result::tests::{ran, rescued};
    use super::*;

    fn conditions() -> Conditions {
        Conditions {
            nodes: vec!["n1".to_owned(), "n2".to_owned()],
            slow: "n2".to_owned(),
            slowness: 3.0,
            slots_per_node: 2,
            preempts: false,
            launch_s: 1.0,
            kill_s: 1.0,
            release_s: 1.0,
            report_s: 1.0,
        }
    }

    /// In the simulator the second task was on the healthy node and needed no clone.
    fn compared() -> Compared {
        let mut paired = rescued();
        paired.attempts[1] = ran(1, 0, "n1", 12.0, 23.0, true);
        paired.attempts.truncate(2);
        paired.jobs[0].done = Some(23.0);
        let mut real = rescued();
        (real.jobs[0].met, real.jobs[0].within) = (false, 29.0);
        Compared {
            policy: "p".to_owned(),
            real,
            paired: paired.clone(),
            others: vec![("", vec![paired; 3])],
        }
    }

    #[test]
    fn the_cause_is_the_part_that_took_longest_and_where_it_was() {
        let cause = cause(&compared(), 0, &conditions()).unwrap();
        assert!(
            cause.contains("task 1 really was rescued later: +15.0 s of +17.0 s"),
            "{cause}"
        );
        assert!(cause.contains("slow node there only"), "{cause}");
        let text = differences(&[compared()], &conditions());
        assert!(
            text.contains("really late after 30.0 s, simulated in time after 13.0 s"),
            "{text}"
        );
    }

    #[test]
    fn lateness_below_a_second_is_explained_by_whole_seconds() {
        let mut compared = compared();
        compared.real.jobs[0].within = 30.5;
        let cause = cause(&compared, 0, &conditions()).unwrap();
        assert!(cause.contains("whole seconds"), "{cause}");
    }

    #[test]
    fn figures_stand_beside_each_other() {
        let text = figures(&[compared()]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("0 of 1") && lines[2].contains("1 of 1"),
            "{text}"
        );
        assert!(
            lines[3].contains("1.0 ± 0.0") && lines[3].contains("mean of 3"),
            "{text}"
        );
        assert!(parts(&[compared()]).contains("15.0"));
    }

    #[test]
    fn delays_are_medians_of_what_was_seen() {
        let came = rescued();
        let delays = Delays::of([&came].into_iter()).unwrap();
        assert_eq!(
            (delays.launch, delays.release, delays.kill),
            (1.0, 1.0, 1.5)
        );
        assert_eq!(Delays::of(std::iter::empty()), None);
    }

    #[test]
    fn an_interval_is_that_of_the_mean() {
        // s = 1, t = 4.303, n = 3.
        assert_eq!(interval(&[1.0, 2.0, 3.0], 2), "2.00 ± 2.48");
        assert_eq!(interval(&[1.0], 1), "1.0");
    }
}
