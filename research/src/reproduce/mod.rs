//! The papers' figures and tables, run again: printed value, ours, and a verdict for each.
//!
//! - [`PAPERS`]: every figure, as data.
//! - [`findings`]: results of a figure.
//! - [`verdict`]: the rule of the verdicts.
//! - [`causes`]: variants of a set-up, for the values that differ.
//! - [`lab`]: runs of the simulator, by flags of `shed-sim run`.
//! - [`render`]: the page.
//! - [`check`]: a page compared with the committed one.
//!
//! Each paper has a file. A figure that is not run contains the reason.

pub mod causes;
pub mod check;
mod dollymp;
pub mod findings;
pub mod lab;
mod laser;
pub mod render;
mod sca;
mod shed;
mod shed_plus;
mod testbed;
pub mod verdict;

use crate::LabError;
use causes::Causes;
use findings::{Findings, Line};
use lab::Lab;
use verdict::Verdict;

/// A figure, a table, or a group of values of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// As on the command line.
    pub id: &'static str,
    /// The figure's title.
    pub title: &'static str,
    /// How it was run, and where that is a reading of the paper.
    pub about: &'static str,
    make: Make,
    /// Whether its last digits depend on the processor.
    pub is_inexact: bool,
}

impl Figure {
    /// Runs it. A printed value without a source in the paper is an error.
    pub fn make(&self, lab: &mut Lab) -> Result<Findings, LabError> {
        let findings = match self.make {
            Make::ClosedForms => Findings::of_closed_forms(self.id),
            Make::Runs(make) => make(lab)?,
        };
        match findings.fault() {
            None => Ok(findings),
            Some(fault) => Err(LabError::usage(format!("{}: {fault}", self.id))),
        }
    }
}

/// How a figure is made.
#[derive(Debug, Clone, Copy)]
enum Make {
    /// From `shed_formulas::closed_forms`, by the figure's name.
    ClosedForms,
    /// From runs of the simulator.
    Runs(fn(&mut Lab) -> Result<Findings, LabError>),
}

/// Runs the variants of a figure if one of its lines differs, and keeps their effects. `lines` returns the figure's
/// lines in one set-up, in the same order for all.
fn tried<S>(
    lab: &mut Lab,
    findings: &mut Findings,
    variants: &[(&str, S)],
    lines: impl Fn(&mut Lab, &S) -> Result<Vec<Line>, LabError>,
) -> Result<(), LabError> {
    let differs = |line: &Line| line.verdict() == Verdict::Differs;
    if !findings.lines.iter().any(differs) {
        return Ok(());
    }
    let mut runs = Vec::new();
    for (name, set_up) in variants {
        runs.push(((*name).to_owned(), lines(lab, set_up)?));
    }
    findings.causes = Causes::of(&findings.lines, &runs);
    Ok(())
}

/// A paper with its figures.
#[derive(Debug, Clone, Copy)]
pub struct Paper {
    /// As on the command line.
    pub id: &'static str,
    /// Title and place.
    pub title: &'static str,
    /// In the order of the page.
    pub figures: &'static [Figure],
}

/// All of them.
pub static PAPERS: &[Paper] = &[
    shed::PAPER,
    shed_plus::PAPER,
    laser::PAPER,
    sca::PAPER,
    dollymp::PAPER,
];

/// Figures for a name: all figures, a paper's, or one; empty for an unknown name.
pub fn find(name: &str) -> Vec<(&'static Paper, &'static Figure)> {
    let figures = PAPERS
        .iter()
        .flat_map(|paper| paper.figures.iter().map(move |figure| (paper, figure)));
    let is_wanted = |(paper, figure): &(&Paper, &Figure)| {
        name == "all" || paper.id == name || figure.id.eq_ignore_ascii_case(name)
    };
    figures.filter(is_wanted).collect()
}

/// Papers and figures with their titles, a line each.
pub fn known() -> String {
    let mut lines = vec!["  all".to_owned()];
    for paper in PAPERS {
        lines.push(format!("  {:<14}{}", paper.id, paper.title));
        for figure in paper.figures {
            lines.push(format!("    {:<12}{}", figure.id, figure.title));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
