//! The papers' figures and tables, run again: published value, ours, and a verdict for each.
//!
//! - [`PAPERS`]: every figure, as data.
//! - [`findings`]: results of a figure, and the verdicts.
//! - [`lab`]: runs of the simulator, by flags of `shed-sim run`.
//! - [`render`]: the page.
//!
//! Each paper has a file. A figure that is not run contains the reason.

mod dollymp;
pub mod findings;
pub mod lab;
mod laser;
pub mod render;
mod sca;
mod shed;
mod shed_plus;
mod testbed;

use crate::LabError;
use findings::Findings;
use lab::Lab;

/// A figure, a table, or a group of values of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// As on the command line.
    pub id: &'static str,
    /// The figure's title.
    pub title: &'static str,
    /// How it was run, and where that is a reading of the paper.
    pub about: &'static str,
    make: fn(&mut Lab) -> Result<Findings, LabError>,
}

impl Figure {
    /// Runs it.
    pub fn make(&self, lab: &mut Lab) -> Result<Findings, LabError> {
        (self.make)(lab)
    }
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
