//! Findings of a figure: values next to printed ones, orderings that must hold, values that the paper has in a
//! picture only, and the closed forms of our own specification. Only [`super::verdict`] judges them.

use shed_formulas::closed_forms::{self, Expected};
use shed_sim::stats;

use super::causes::Causes;
use super::verdict::{Check, Verdict, judge, judge_order};

/// One number per seed; one number alone is a closed form.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample(pub Vec<f64>);

impl Sample {
    /// A number that does not depend on a seed.
    pub fn exact(value: f64) -> Self {
        Self(vec![value])
    }

    /// The mean of samples, seed by seed; empty of none.
    pub fn mean_of(samples: &[Self]) -> Self {
        let count = samples.len() as f64;
        let sum = samples
            .iter()
            .cloned()
            .reduce(|sum, next| sum.with(&next, |a, b| a + b));
        Self(sum.map_or_else(Vec::new, |sum| {
            sum.0.iter().map(|value| value / count).collect()
        }))
    }

    /// Without the seeds that have no such number.
    pub fn finite(self) -> Self {
        Self(
            self.0
                .into_iter()
                .filter(|value| value.is_finite())
                .collect(),
        )
    }

    /// The mean; NaN of nothing.
    pub fn mean(&self) -> f64 {
        stats::mean(&self.0)
    }

    /// Half of the 95 % interval of the mean; absent for fewer than two values.
    pub fn half_width(&self) -> Option<f64> {
        stats::half_width_95(&self.0)
    }

    /// Result of `combine` for both, seed by seed.
    pub fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(&a, &b)| combine(a, b)).collect())
    }
}

/// What the source of a printed value begins with.
const SOURCES: [&str; 6] = [
    "Figure ",
    "Figures ",
    "Table ",
    "section ",
    "equation ",
    "abstract",
];

/// A printed value next to ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The measure, with its unit.
    pub what: String,
    /// Where the paper prints it.
    pub source: &'static str,
    /// As printed; absent where the paper has words, which the check reads.
    pub printed: Option<f64>,
    /// Ours.
    pub ours: Sample,
    /// How they are compared.
    pub check: Check,
    /// Why there is no value of ours.
    pub missing: Option<&'static str>,
}

impl Line {
    /// A line with a printed value.
    pub fn new(
        what: impl Into<String>,
        source: &'static str,
        printed: f64,
        ours: Sample,
        check: Check,
    ) -> Self {
        Self {
            what: what.into(),
            source,
            printed: Some(printed),
            ours,
            check,
            missing: None,
        }
    }

    /// The verdict on it.
    pub fn verdict(&self) -> Verdict {
        let accepted = self.check.accepted(self.printed.unwrap_or(f64::NAN));
        judge(accepted, self.ours.mean(), self.ours.half_width())
    }

    /// Returns what the line lacks to be a comparison with a paper.
    fn fault(&self) -> Option<String> {
        if !SOURCES.iter().any(|start| self.source.starts_with(start)) {
            return Some(format!(
                "`{}` has no source in the paper, but `{}`",
                self.what, self.source
            ));
        }
        let needs_value = matches!(self.check, Check::Within(_) | Check::Relative(_));
        let has_value = self.printed.is_some_and(f64::is_finite);
        (needs_value && !has_value).then(|| format!("`{}` has no printed value", self.what))
    }
}

/// An ordering that must hold: the higher is above the lower by the margin at least, in the mean of
/// differences paired by seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// In words.
    pub claim: String,
    /// Higher − lower by seed.
    pub difference: Sample,
    /// By how much; 0 for "not below".
    pub margin: f64,
}

impl Gate {
    /// `higher` is not below `lower`.
    pub fn not_below(claim: impl Into<String>, higher: &Sample, lower: &Sample) -> Self {
        Self::above_by(claim, higher, lower, 0.0)
    }

    /// `higher` is above `lower` by `margin` at least.
    pub fn above_by(
        claim: impl Into<String>,
        higher: &Sample,
        lower: &Sample,
        margin: f64,
    ) -> Self {
        Self {
            claim: claim.into(),
            difference: higher.with(lower, |a, b| a - b),
            margin,
        }
    }

    /// The verdict on it.
    pub fn verdict(&self) -> Verdict {
        let difference = &self.difference;
        judge_order(self.margin, difference.mean(), difference.half_width())
    }

    /// Whether it holds by its mean, and the interval has values below the margin.
    pub fn is_wide(&self) -> bool {
        let half = self.difference.half_width().unwrap_or(0.0);
        self.verdict() == Verdict::Holds && self.difference.mean() - half < self.margin
    }
}

/// A closed form next to the value of our own specification.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// The measure, with its unit.
    pub what: String,
    /// The specified value.
    pub value: f64,
    /// Ours.
    pub ours: f64,
    /// The largest difference that agrees.
    pub tolerance: f64,
}

impl Reference {
    /// Whether they agree.
    pub fn verdict(&self) -> Verdict {
        judge(
            Check::Within(self.tolerance).accepted(self.value),
            self.ours,
            None,
        )
    }
}

/// Values that the paper has in a picture only, and that cannot be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The picture, and what was measured in place of it.
    pub about: String,
    /// The first column's name, then the others'.
    pub columns: Vec<String>,
    /// The first column, and a sample for each of the others.
    pub rows: Vec<(String, Vec<Sample>)>,
}

impl Series {
    /// With names of its columns.
    pub fn new(
        about: impl Into<String>,
        columns: impl IntoIterator<Item = &'static str>,
        rows: Vec<(String, Vec<Sample>)>,
    ) -> Self {
        Self {
            about: about.into(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            rows,
        }
    }
}

/// All results of a figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Printed values and ours.
    pub lines: Vec<Line>,
    /// Orderings.
    pub gates: Vec<Gate>,
    /// Values of our own specification and ours.
    pub references: Vec<Reference>,
    /// Pictures.
    pub series: Vec<Series>,
    /// Variants of the set-up that were tried for lines that differ.
    pub causes: Option<Causes>,
    /// Parts of the figure that were not run, with the reason.
    pub not_run: Vec<String>,
}

impl Findings {
    /// Of lines alone.
    pub fn of_lines(lines: Vec<Line>) -> Self {
        Self {
            lines,
            ..Self::default()
        }
    }

    /// Adds a printed value and ours.
    pub fn compare(
        &mut self,
        what: impl Into<String>,
        source: &'static str,
        printed: f64,
        ours: Sample,
        check: Check,
    ) {
        let line = Line::new(what, source, printed, ours, check);
        self.lines.push(line);
    }

    /// Adds a printed value that nothing here can be compared with.
    pub fn cannot_be_made(
        &mut self,
        what: impl Into<String>,
        source: &'static str,
        check: Check,
        reason: &'static str,
    ) {
        self.lines.push(Line {
            what: what.into(),
            source,
            printed: None,
            ours: Sample(Vec::new()),
            check,
            missing: Some(reason),
        });
    }

    /// Adds that `higher` must not be below `lower`.
    pub fn not_below(&mut self, claim: impl Into<String>, higher: &Sample, lower: &Sample) {
        self.gates.push(Gate::not_below(claim, higher, lower));
    }

    /// The closed forms of a figure, each in the table that its value belongs to.
    pub fn of_closed_forms(id: &str) -> Self {
        let mut findings = Self::default();
        let mut pictured = Vec::new();
        for form in closed_forms::of(id) {
            let (what, ours) = (form.what, Sample::exact(form.ours));
            match form.expected {
                Expected::Printed {
                    source,
                    value,
                    tolerance,
                } => findings.compare(what, source, value, ours, Check::Within(tolerance)),
                Expected::AtMost { source, most } => findings.lines.push(Line {
                    what,
                    source,
                    printed: None,
                    ours,
                    check: Check::AtMost(most),
                    missing: None,
                }),
                Expected::Specified { value, tolerance } => findings.references.push(Reference {
                    what,
                    value,
                    ours: form.ours,
                    tolerance,
                }),
                Expected::Pictured => pictured.push((what, vec![ours])),
            }
        }
        if !pictured.is_empty() {
            let about = "the picture, by the closed form";
            findings
                .series
                .push(Series::new(about, ["what", "ours"], pictured));
        }
        findings
    }

    /// Returns the first fault: every printed value has a source in its paper.
    pub fn fault(&self) -> Option<String> {
        self.lines.iter().find_map(Line::fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample(values.to_vec())
    }

    #[test]
    fn an_order_is_judged_on_differences_paired_by_seed() {
        let (high, low) = (sample(&[10.0, 50.0, 90.0]), sample(&[9.0, 49.0, 89.0]));
        let gate = |a, b, margin| Gate::above_by("a over b", a, b, margin).verdict();
        assert_eq!(gate(&high, &low, 0.0), Verdict::Holds);
        assert_eq!(gate(&high, &low, 1.5), Verdict::Differs);
        assert_eq!(gate(&low, &high, 0.0), Verdict::Differs);
        let mixed = sample(&[8.0, 52.0, 85.0]);
        assert_eq!(gate(&mixed, &low, 0.0), Verdict::CannotBeMade);
    }

    #[test]
    fn a_printed_value_without_a_source_is_refused() {
        let line = |source, printed, check| Line {
            printed,
            ..Line::new("met, %", source, 1.0, sample(&[90.0]), check)
        };
        for (source, printed, check, fault) in [
            (
                "Figure 4, section VI.B",
                Some(90.0),
                Check::Within(10.0),
                None,
            ),
            ("abstract", Some(90.0), Check::Relative(0.1), None),
            ("Figures 2 and 3", Some(90.0), Check::Within(10.0), None),
            ("Figure 2", None, Check::AtMost(5.0), None),
            ("", Some(90.0), Check::Within(10.0), Some("has no source")),
            (
                "the specification",
                Some(90.0),
                Check::Within(10.0),
                Some("`the specification`"),
            ),
            (
                "Table II",
                None,
                Check::Within(10.0),
                Some("no printed value"),
            ),
            (
                "Table II",
                Some(f64::NAN),
                Check::Within(10.0),
                Some("no printed value"),
            ),
        ] {
            let found = Findings::of_lines(vec![line(source, printed, check)]).fault();
            match fault {
                None => assert_eq!(found, None, "{source}"),
                Some(part) => assert!(found.is_some_and(|text| text.contains(part)), "{source}"),
            }
        }
    }

    #[test]
    fn specified_values_stand_apart_from_printed_ones() {
        let model = Findings::of_closed_forms("S5-model");
        assert_eq!((model.lines.len(), model.references.len()), (4, 20));
        assert_eq!(model.fault(), None);
        let pictured = Findings::of_closed_forms("P-clones");
        assert_eq!(pictured.series.len(), 1);
        assert_eq!(pictured.lines.len(), 2);
    }
}
