//! The bars of shed-prime: clones per task, clones per win, and non-inferiority to the frozen version.

use std::ops::Range;

use serde::Serialize;

use super::noninferiority::{Estimated, Margins, SeedPlan, differences};
use super::points;
use super::runs::{OWN, Runner, Workload, figures, percents};
use crate::cli::clone_counts::CloneCounts;
use shed_sim::cli::CliError;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::sweep::ResultsFile;
use shed_sim::outcome::Figures;

/// What a preset must not exceed, at loads 0.6 and 0.95 and deadline factor 1.5.
struct Bar {
    preset: &'static str,
    clones_per_task: f64,
    /// Absent for made-up workloads, and where clones never help or deadlines are jittered: there the clones per task
    /// alone are limited.
    clones_per_win: Option<f64>,
}

const fn bar(preset: &'static str, clones_per_task: f64, clones_per_win: Option<f64>) -> Bar {
    Bar {
        preset,
        clones_per_task,
        clones_per_win,
    }
}

const BARS: [Bar; 15] = [
    bar("A", 0.85, None),
    bar("Ar", 0.85, None),
    bar("aL", 2.1, None),
    bar("aS", 0.5, None),
    bar("an", 2.1, None),
    bar("C", 1.6, None),
    bar("G", 0.15, Some(6.0)),
    bar("Gr", 0.15, Some(6.0)),
    bar("Gn", 0.15, Some(6.0)),
    bar("G1", 0.05, None),
    bar("GJ", 0.15, None),
    bar("P", 0.4, Some(6.0)),
    bar("Y", 0.6, Some(6.0)),
    bar("F", 0.12, Some(6.0)),
    bar("T", 0.03, Some(6.0)),
];

const MARGINS: Margins = Margins {
    estimate: -1.0,
    upper_end: -0.5,
    mean: -0.2,
};

/// A cell's interval is narrow enough at this many points of half-width.
const HALF_WIDTH: f64 = 1.0;

/// A cell against its bars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) preset: String,
    pub(super) load: String,
    pub(super) seeds: usize,
    pub(super) met_percent: f64,
    /// To the frozen version, in points, paired by seed.
    pub(super) difference: f64,
    pub(super) half95: Option<f64>,
    /// Whether the half-width is at most a point.
    pub(super) is_narrow: bool,
    pub(super) difference_holds: bool,
    pub(super) clones_per_task: Option<f64>,
    pub(super) clones_per_task_bar: f64,
    pub(super) clones_per_task_holds: bool,
    pub(super) clones_per_win: Option<f64>,
    pub(super) clones_per_win_bar: Option<f64>,
    pub(super) clones_per_win_holds: bool,
}

/// All cells together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Overall {
    pub(super) cells: usize,
    /// Cells in which every bar holds.
    pub(super) cells_that_hold: usize,
    /// Mean of the cells' differences, in points.
    pub(super) mean_difference: f64,
    pub(super) mean_difference_holds: bool,
}

/// A cell: its bars, and its runs so far.
struct Contest<'a> {
    workload: &'a Workload,
    bar: &'static Bar,
    own: Vec<Cell>,
    frozen: Vec<Cell>,
}

impl<'a> Contest<'a> {
    fn new(workload: &'a Workload) -> Result<Self, CliError> {
        Ok(Self {
            workload,
            bar: bar_of(workload)?,
            own: Vec::new(),
            frozen: Vec::new(),
        })
    }

    fn extend(&mut self, seeds: Range<u64>) -> Result<(), CliError> {
        self.own = self.workload.cells(OWN, seeds.clone())?;
        self.frozen = self.workload.frozen_cells(seeds)?;
        Ok(())
    }

    fn differences(&self, results: &ResultsFile) -> Result<Vec<f64>, CliError> {
        let own = percents(&figures(results, &self.own)?)?;
        let frozen = percents(&figures(results, &self.frozen)?)?;
        Ok(points::differences(&own, &frozen))
    }
}

/// Runs each workload under both versions on as many seeds as its interval needs: `initial` from `first` on, at most
/// `most`.
pub(super) fn verdicts(
    workloads: &[Workload],
    (first, initial, most): (u64, u64, u64),
    results: &mut ResultsFile,
    runner: &Runner,
    threads: Option<usize>,
) -> Result<Vec<Verdict>, CliError> {
    let contests: Result<Vec<Contest<'_>>, CliError> = workloads.iter().map(Contest::new).collect();
    let mut contests = contests?;
    let plan = SeedPlan {
        first: initial,
        most,
        half_width: HALF_WIDTH,
    };
    let found = differences(workloads.len(), plan, |open| {
        let mut wanted = Vec::new();
        for &(at, seeds) in open {
            let contest = &mut contests[at];
            contest.extend(first..first + seeds)?;
            wanted.extend(contest.own.iter().chain(&contest.frozen).cloned());
        }
        eprintln!("{} of {} cells need seeds", open.len(), workloads.len());
        results.complete(&wanted, threads, |cell| runner.run(cell))?;
        let of_cells = open
            .iter()
            .map(|(at, _)| contests[*at].differences(results));
        of_cells.collect()
    })?;
    let judged = contests.iter().zip(&found).map(|(contest, differences)| {
        let own = figures(results, &contest.own)?;
        verdict(contest.workload, contest.bar, &own, differences)
    });
    judged.collect()
}

fn bar_of(workload: &Workload) -> Result<&'static Bar, CliError> {
    let found = BARS.iter().find(|bar| bar.preset == workload.preset);
    found.ok_or_else(|| {
        let known: Vec<&str> = BARS.iter().map(|bar| bar.preset).collect();
        CliError::Usage(format!(
            "--preset: `{}` has no bars; those with bars are {}",
            workload.preset,
            known.join(", ")
        ))
    })
}

fn verdict(
    workload: &Workload,
    bar: &Bar,
    own: &[&Figures],
    differences: &[f64],
) -> Result<Verdict, CliError> {
    let estimated = Estimated::of(differences);
    let counts = CloneCounts::of(own.iter().copied());
    // Clones without any win exceed every number per win.
    let wins_hold = |most: f64| counts.clones <= most * counts.wins;
    Ok(Verdict {
        preset: workload.preset.clone(),
        load: workload.load.clone(),
        seeds: differences.len(),
        met_percent: Estimated::of(&percents(own)?).mean,
        difference: estimated.mean,
        half95: estimated.half_width,
        is_narrow: estimated.half_width.is_some_and(|half| half <= HALF_WIDTH),
        difference_holds: estimated.holds(&MARGINS),
        clones_per_task: counts.per_task(),
        clones_per_task_bar: bar.clones_per_task,
        clones_per_task_holds: counts.clones <= bar.clones_per_task * counts.tasks,
        clones_per_win: counts.per_win(),
        clones_per_win_bar: bar.clones_per_win,
        clones_per_win_holds: bar.clones_per_win.is_none_or(wins_hold),
    })
}

impl Verdict {
    /// Whether every bar of the cell holds.
    pub(super) fn holds(&self) -> bool {
        self.difference_holds && self.clones_per_task_holds && self.clones_per_win_holds
    }
}

/// The cells together.
pub(super) fn overall(verdicts: &[Verdict]) -> Overall {
    let differences: Vec<f64> = verdicts.iter().map(|verdict| verdict.difference).collect();
    let mean = Estimated::of(&differences).mean;
    Overall {
        cells: verdicts.len(),
        cells_that_hold: verdicts.iter().filter(|verdict| verdict.holds()).count(),
        mean_difference: mean,
        mean_difference_holds: mean >= MARGINS.mean,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn figures(met: u64, tasks: u64, clones: u64, wins: u64) -> Figures {
        let figures = serde_json::json!({
            "jobs": 100, "jobs_with_deadline": 100, "jobs_met": met, "jobs_completed": met, "pocd": met as f64 / 100.0,
            "mean_flowtime_s": null, "p50_flowtime_s": null, "p90_flowtime_s": null, "p99_flowtime_s": null,
            "machine_seconds": 100.0, "machine_seconds_wasted": 10.0, "tasks": tasks, "attempts": tasks + clones,
            "clones": clones, "clone_wins": wins, "kills": 0, "failures": 0, "disruptions": 0, "utilisation": null,
            "events": 1, "digest": "0",
        });
        serde_json::from_value(figures).expect("figures")
    }

    fn of(preset: &str) -> Workload {
        Workload {
            preset: preset.to_owned(),
            load: "0.6".to_owned(),
            flags: String::new(),
        }
    }

    pub(in crate::cli::frontier) fn judged(
        preset: &str,
        clones: u64,
        wins: u64,
        differences: &[f64],
    ) -> Verdict {
        let (workload, run) = (of(preset), figures(90, 1000, clones, wins));
        let bar = bar_of(&workload).expect("bars");
        verdict(&workload, bar, &[&run, &run], differences).expect("a verdict")
    }

    #[test]
    fn each_bar_is_judged_by_itself() {
        let level = [0.2, 0.4];
        let holds = judged("G", 150, 25, &level);
        assert!(
            holds.holds() && holds.clones_per_win == Some(6.0),
            "{holds:?}"
        );
        assert!(!judged("G", 151, 50, &level).clones_per_task_holds);
        assert!(!judged("G", 150, 24, &level).clones_per_win_holds);
        assert!(
            !judged("G", 150, 0, &level).clones_per_win_holds,
            "no clone won"
        );
        assert!(
            judged("G", 0, 0, &level).holds(),
            "no clone, no bar exceeded"
        );
        assert!(
            judged("G1", 50, 1, &level).holds(),
            "clones per win are not limited"
        );
        assert!(!judged("A", 10, 5, &[-1.1, -1.2]).difference_holds);
        assert!(!judged("A", 10, 5, &[9.0, -9.0]).is_narrow);
    }

    #[test]
    fn the_mean_over_cells_has_a_bar_of_its_own() {
        let low = judged("A", 10, 5, &[-0.5, -0.3]);
        let high = judged("T", 10, 5, &[0.1, 0.3]);
        let both = overall(&[low.clone(), high]);
        assert!((both.mean_difference + 0.1).abs() < 1e-9 && both.mean_difference_holds);
        assert_eq!((both.cells, both.cells_that_hold), (2, 2));
        assert!(!overall(&[low]).mean_difference_holds);
    }

    #[test]
    fn a_preset_without_bars_is_answered_with_those_that_have_some() {
        let error = bar_of(&of("S")).err().expect("no bars").to_string();
        assert!(
            error.contains("`S` has no bars") && error.contains("G1, GJ, P"),
            "{error}"
        );
    }
}
