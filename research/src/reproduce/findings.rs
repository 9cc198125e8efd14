//! Findings of a figure: values next to published ones, orderings that must hold, and set-ups that
//! were tried if the two differ. Only this module makes the verdicts.

use shed_sim::stats;

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

/// How ours is held against the published value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// At most so far from it.
    Within(f64),
    /// At most that share of it away.
    Relative(f64),
    /// At least this, independent of the published value.
    AtLeast(f64),
    /// At most this, independent of the published value.
    AtMost(f64),
    /// Not compared, because the specification requires only a report.
    Report,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not hold, but the interval over seeds contains a value for which it would.
    Open,
    /// It does not.
    Differs,
    /// No check is required.
    Reported,
}

impl Verdict {
    /// For tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Open => "open: within the interval",
            Self::Differs => "**differs**",
            Self::Reported => "reported",
        }
    }
}

/// A published value next to ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The measure, with its unit.
    pub what: String,
    /// As published; absent where the paper gives an order alone.
    pub published: Option<f64>,
    /// Ours.
    pub ours: Sample,
    /// How they are compared.
    pub check: Check,
}

impl Line {
    /// A line with a published value.
    pub fn new(what: impl Into<String>, published: f64, ours: Sample, check: Check) -> Self {
        Self {
            what: what.into(),
            published: Some(published),
            ours,
            check,
        }
    }

    /// A line without a published number.
    pub fn unpublished(what: impl Into<String>, ours: Sample, check: Check) -> Self {
        Self {
            what: what.into(),
            published: None,
            ours,
            check,
        }
    }

    /// Whether the check holds.
    pub fn verdict(&self) -> Verdict {
        let published = self.published.unwrap_or(f64::NAN);
        let off = self.ours.mean() - published;
        // By how much it fails; NaN (nothing measured or published) fails too.
        let short = match self.check {
            Check::Report => return Verdict::Reported,
            Check::Within(tolerance) => off.abs() - tolerance,
            Check::Relative(share) => off.abs() - share * published.abs(),
            Check::AtLeast(least) => least - self.ours.mean(),
            Check::AtMost(most) => self.ours.mean() - most,
        };
        judge(short, self.ours.half_width())
    }
}

fn judge(short: f64, half_width: Option<f64>) -> Verdict {
    if short <= 0.0 {
        Verdict::Holds
    } else if half_width.is_some_and(|half| short <= half) {
        Verdict::Open
    } else {
        Verdict::Differs
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

    /// Whether it holds.
    pub fn verdict(&self) -> Verdict {
        judge(
            self.margin - self.difference.mean(),
            self.difference.half_width(),
        )
    }
}

/// Set-ups that were tried to find the cause of a published value.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// The parameter that varies.
    pub about: String,
    /// The measures, each with the published value.
    pub columns: Vec<(String, Option<f64>)>,
    /// The set-ups, each with a sample per column.
    pub rows: Vec<(String, Vec<Sample>)>,
}

impl Trials {
    /// With columns that each have a published value or none.
    pub fn new<C: Into<String>>(
        about: impl Into<String>,
        columns: impl IntoIterator<Item = (C, Option<f64>)>,
        rows: Vec<(String, Vec<Sample>)>,
    ) -> Self {
        let columns = columns.into_iter();
        Self {
            about: about.into(),
            columns: columns.map(|(what, value)| (what.into(), value)).collect(),
            rows,
        }
    }

    /// The mean distance of a row from the published values; absent without any.
    pub fn distance(&self, row: &[Sample]) -> Option<f64> {
        let columns = self.columns.iter().zip(row);
        let distances: Vec<f64> = columns
            .filter_map(|((_, published), ours)| Some((ours.mean() - (*published)?).abs()))
            .collect();
        (!distances.is_empty()).then(|| stats::mean(&distances))
    }

    /// The position of the row with the least distance; the first of equals.
    pub fn nearest(&self) -> Option<usize> {
        let rows = self.rows.iter().enumerate();
        let distances = rows.filter_map(|(at, (_, row))| Some((at, self.distance(row)?)));
        let least = distances.min_by(|a, b| a.1.total_cmp(&b.1));
        least.map(|(at, _)| at)
    }
}

/// All results of a figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// Published and ours.
    pub lines: Vec<Line>,
    /// Orderings.
    pub gates: Vec<Gate>,
    /// Set-ups that were tried if they differ.
    pub trials: Vec<Trials>,
    /// Parts of the figure that were not run, with the reason.
    pub not_run: Vec<String>,
}

impl Findings {
    /// Adds a published value and ours.
    pub fn compare(&mut self, what: impl Into<String>, published: f64, ours: Sample, check: Check) {
        self.lines.push(Line::new(what, published, ours, check));
    }

    /// Adds that `higher` must not be below `lower`.
    pub fn not_below(&mut self, claim: impl Into<String>, higher: &Sample, lower: &Sample) {
        self.gates.push(Gate::not_below(claim, higher, lower));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample(values.to_vec())
    }

    #[test]
    fn a_line_is_judged_by_its_tolerance_and_its_interval() {
        let verdict = |ours: &[f64], check| Line::new("x", 90.0, sample(ours), check).verdict();
        assert_eq!(verdict(&[85.0, 87.0], Check::Within(5.0)), Verdict::Holds);
        assert_eq!(verdict(&[80.0, 88.0], Check::Within(5.0)), Verdict::Open);
        assert_eq!(verdict(&[80.0, 80.0], Check::Within(5.0)), Verdict::Differs);
        assert_eq!(verdict(&[82.0], Check::Relative(0.1)), Verdict::Holds);
        assert_eq!(verdict(&[80.0], Check::Relative(0.1)), Verdict::Differs);
        assert_eq!(verdict(&[95.0], Check::AtMost(94.0)), Verdict::Differs);
        assert_eq!(verdict(&[95.0], Check::AtLeast(95.0)), Verdict::Holds);
        assert_eq!(verdict(&[1.0], Check::Report), Verdict::Reported);
        assert_eq!(verdict(&[], Check::Within(5.0)), Verdict::Differs);
    }

    #[test]
    fn what_was_not_published_is_never_within_a_tolerance() {
        let line = Line::unpublished("x", sample(&[1.0]), Check::Within(1e9));
        assert_eq!(line.verdict(), Verdict::Differs);
    }

    #[test]
    fn an_order_is_judged_on_differences_paired_by_seed() {
        let (high, low) = (sample(&[10.0, 50.0, 90.0]), sample(&[9.0, 49.0, 89.0]));
        let gate = |a, b, margin| Gate::above_by("a over b", a, b, margin).verdict();
        assert_eq!(gate(&high, &low, 0.0), Verdict::Holds);
        assert_eq!(gate(&high, &low, 1.5), Verdict::Differs);
        assert_eq!(gate(&low, &high, 0.0), Verdict::Differs);
        let mixed = sample(&[8.0, 52.0, 85.0]);
        assert_eq!(gate(&mixed, &low, 0.0), Verdict::Open);
    }

    #[test]
    fn the_nearest_setup_has_the_least_mean_distance() {
        let mut trials = Trials {
            about: String::new(),
            columns: vec![("a".into(), Some(10.0)), ("b".into(), None)],
            rows: vec![
                ("far".into(), vec![Sample::exact(20.0), Sample::exact(0.0)]),
                ("near".into(), vec![Sample::exact(9.0), Sample::exact(5.0)]),
            ],
        };
        assert_eq!(trials.nearest(), Some(1));
        trials.columns[0].1 = None;
        assert_eq!(trials.nearest(), None);
    }
}
