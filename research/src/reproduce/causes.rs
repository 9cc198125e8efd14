//! Variants of a set-up, run on the same seeds for the comparisons that differ: by how much each moves ours.

use super::findings::{Line, Sample};
use super::verdict::Verdict;

/// The effect of a variant on one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Variant − base by seed, in the unit of the value.
    pub difference: Sample,
    /// The verdict that the variant would have.
    pub verdict: Verdict,
}

/// A value that differs, and the effects of all variants on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The line that differs, in the base set-up.
    pub line: Line,
    /// In the order of the variants.
    pub effects: Vec<Effect>,
}

/// The table of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Causes {
    /// Their names.
    pub variants: Vec<String>,
    /// The values that differ.
    pub rows: Vec<Row>,
}

impl Causes {
    /// Rows for those of `base` that differ; absent of none. Each variant has the lines of `base`, in their order.
    pub fn of(base: &[Line], variants: &[(String, Vec<Line>)]) -> Option<Self> {
        let differing = base.iter().enumerate();
        let differing = differing.filter(|(_, line)| line.verdict() == Verdict::Differs);
        let rows: Vec<Row> = differing
            .map(|(at, line)| Row {
                line: line.clone(),
                effects: variants
                    .iter()
                    .map(|(_, lines)| effect(line, lines.get(at)))
                    .collect(),
            })
            .collect();
        let names = variants.iter().map(|(name, _)| name.clone());
        (!rows.is_empty() && !variants.is_empty()).then(|| Self {
            variants: names.collect(),
            rows,
        })
    }
}

fn effect(base: &Line, variant: Option<&Line>) -> Effect {
    Effect {
        difference: variant.map_or(Sample(Vec::new()), |variant| {
            variant.ours.with(&base.ours, |a, b| a - b)
        }),
        verdict: variant.map_or(Verdict::CannotBeMade, Line::verdict),
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Check;
    use super::*;

    fn line(what: &str, ours: [f64; 2]) -> Line {
        let check = Check::Within(5.0);
        Line::new(what, "Figure 4", 90.0, Sample(ours.to_vec()), check)
    }

    #[test]
    fn each_value_that_differs_has_the_effects_of_all_variants() {
        let base = [line("a", [89.0, 90.0]), line("b", [60.0, 61.0])];
        let launch = vec![line("a", [80.0, 80.0]), line("b", [88.0, 91.0])];
        let load = vec![line("a", [90.0, 90.0]), line("b", [59.0, 62.0])];
        let variants = [("launch 6 s".to_owned(), launch), ("load".to_owned(), load)];
        let causes = Causes::of(&base, &variants).unwrap();
        assert_eq!(causes.variants, ["launch 6 s", "load"]);
        let [row] = &causes.rows[..] else {
            panic!("only `b` differs");
        };
        assert_eq!(row.line.what, "b");
        assert_eq!(row.effects[0].difference, Sample(vec![28.0, 30.0]));
        assert_eq!(row.effects[0].verdict, Verdict::Holds);
        assert_eq!(row.effects[1].difference, Sample(vec![-1.0, 1.0]));
        assert_eq!(row.effects[1].verdict, Verdict::Differs);
    }

    #[test]
    fn nothing_is_tried_where_everything_holds() {
        let base = [line("a", [89.0, 90.0])];
        let variants = [("load".to_owned(), base.to_vec())];
        assert_eq!(Causes::of(&base, &variants), None);
    }
}
