//! The page: how comparisons are judged, their number per paper, and a section per figure.

use std::fmt::Write as _;

use super::causes::Causes;
use super::findings::{Findings, Gate, Line, Reference, Sample, Series};
use super::lab::Scale;
use super::verdict::{Check, Verdict};
use super::{Figure, Paper};

/// A figure with its results.
pub type Result<'a> = (&'a Paper, &'a Figure, Findings);

/// What begins the line that names the commit. It says nothing about the values, so a check ignores it.
pub const COMMIT: &str = "The code that ran is of commit ";

/// The section of all values that no paper prints.
const REFERENCES: &str = "Reference values of this repository";

/// What follows the verdict *holds* where the interval does not say as much as the mean.
const WIDE: &str = ", in a wide interval";

const LEGEND: &str = "\
*Printed* is a number that the paper prints, and *source* the place. *Ours* is the mean over the seeds, ± half of its 95 % \
interval; a value without one is a closed form. *Agrees* has the values that agree with the paper: the printed one with a \
tolerance, or a bound. Verdicts:

- *holds*: the mean agrees, or its interval has values that agree and is at most as wide as the tolerance. *In a wide \
interval* is added where the mean agrees and the interval is wider than that.
- *differs*: no value of the interval agrees.
- *cannot be made*: the interval has values that agree, but it is wider than the comparison needs: than the tolerance, or for \
a bound than 10 points on either side. Or the set-up is missing. The reason stands in the row.

An *ordering* holds if the mean of the differences, paired by seed, is at least the margin, *in a wide interval* if the interval \
has values below it. It differs if the whole interval is below, and otherwise the seeds do not decide it. For each value that differs, *what was tried* has variants of the set-up on the \
same seeds, and by how much each moves ours. Tables *in a picture* are what the paper only draws: they are not compared.\n\n";

/// The whole page in Markdown.
pub fn page(names: &[String], scale: &Scale, commit: &str, results: &[Result<'_>]) -> String {
    let mut text = format!(
        "# The papers' figures, run again\n\nWritten by `shed-lab reproduce {} --seed {} --seeds {} --scale {}`.\n\
         {COMMIT}`{commit}`.\n\n{LEGEND}",
        names.join(" "),
        scale.seed,
        scale.seeds,
        scale.jobs
    );
    let mut papers: Vec<&Paper> = Vec::new();
    for (paper, _, _) in results {
        if !papers.iter().any(|known| known.id == paper.id) {
            papers.push(paper);
        }
    }
    summary(&mut text, &papers, results);
    for paper in papers {
        let _ = writeln!(text, "## {}: {}\n", paper.id, paper.title);
        for (_, figure, findings) in results.iter().filter(|(of, _, _)| of.id == paper.id) {
            section(&mut text, figure, findings);
        }
    }
    references(&mut text, results);
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

/// Number of comparisons per paper and verdict.
fn summary(text: &mut String, papers: &[&Paper], results: &[Result<'_>]) {
    text.push_str(
        "## Summary\n\n\
         | paper | values: hold | of these in a wide interval | differ | cannot be made | orderings: hold | of these in a wide interval | differ | cannot be made |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for paper in papers {
        let of_paper = || results.iter().filter(|(other, _, _)| other.id == paper.id);
        let lines = || of_paper().flat_map(|(_, _, findings)| &findings.lines);
        let gates = || of_paper().flat_map(|(_, _, findings)| &findings.gates);
        let [values, orders] = [
            lines().map(Line::verdict).collect::<Vec<_>>(),
            gates().map(Gate::verdict).collect(),
        ]
        .map(|verdicts| {
            [Verdict::Holds, Verdict::Differs, Verdict::CannotBeMade].map(|wanted| {
                verdicts
                    .iter()
                    .filter(|verdict| **verdict == wanted)
                    .count()
            })
        });
        let wide = lines().filter(|line| is_wide(line)).count();
        let wide_orders = gates().filter(|gate| gate.is_wide()).count();
        let _ = writeln!(
            text,
            "| {} | {} | {wide} | {} | {} | {} | {wide_orders} | {} | {} |",
            paper.id, values[0], values[1], values[2], orders[0], orders[1], orders[2]
        );
    }
    let references = || {
        results
            .iter()
            .flat_map(|(_, _, findings)| &findings.references)
    };
    let (count, hold) = (
        references().count(),
        references()
            .filter(|row| row.verdict() == Verdict::Holds)
            .count(),
    );
    if count > 0 {
        let _ = writeln!(
            text,
            "\nNo paper prints the {count} [reference values of this repository](#reference-values-of-this-repository). \
             They are counted apart: {hold} of them hold."
        );
    }
    text.push('\n');
}

/// Whether a line holds by its mean, in an interval that is wider than the comparison needs.
fn is_wide(line: &Line) -> bool {
    let accepted = line.check.accepted(line.printed.unwrap_or(f64::NAN));
    let is_wide = line
        .ours
        .half_width()
        .is_some_and(|half| half > accepted.needs);
    is_wide && line.verdict() == Verdict::Holds
}

/// A figure, unless only reference values are there.
fn section(text: &mut String, figure: &Figure, findings: &Findings) {
    let only_references = Findings {
        references: findings.references.clone(),
        ..Findings::default()
    };
    if !findings.references.is_empty() && *findings == only_references {
        return;
    }
    let _ = writeln!(
        text,
        "### {}: {}\n\n{}\n",
        figure.id, figure.title, figure.about
    );
    for reason in &findings.not_run {
        let _ = writeln!(text, "Not run: {reason}.\n");
    }
    if !findings.lines.is_empty() {
        text.push_str(
            "| what | source | printed | ours | off | agrees | verdict |\n|---|---|---|---|---|---|---|\n",
        );
        for line in &findings.lines {
            let _ = writeln!(text, "| {} |", of_line(line));
        }
        text.push('\n');
    }
    if !findings.gates.is_empty() {
        text.push_str("| ordering | difference | at least | verdict |\n|---|---|---|---|\n");
        for gate in &findings.gates {
            let difference = sample(&gate.difference);
            let (margin, verdict) = (number(gate.margin), gate.verdict().label());
            let wide = if gate.is_wide() { WIDE } else { "" };
            let _ = writeln!(
                text,
                "| {} | {difference} | {margin} | {verdict}{wide} |",
                gate.claim
            );
        }
        text.push('\n');
    }
    if let Some(causes) = &findings.causes {
        tried(text, causes);
    }
    for series in &findings.series {
        picture(text, series);
    }
}

fn of_line(line: &Line) -> String {
    let printed = line.printed.map_or(String::from("–"), number);
    // Rounding errors of a closed form are nothing to be read.
    let off = line.printed.map(|printed| line.ours.mean() - printed);
    let off = off.filter(|off| !off.is_nan());
    let off = off.map(|off| if off.abs() < 1e-9 { 0.0 } else { off });
    format!(
        "{} | {} | {printed} | {} | {} | {} | {}",
        line.what,
        line.source,
        sample(&line.ours),
        off.map_or(String::new(), number),
        agreeing(line.check),
        verdict(line)
    )
}

fn verdict(line: &Line) -> String {
    let verdict = line.verdict();
    let label = verdict.label();
    if is_wide(line) {
        return format!("{label}{WIDE}");
    }
    if verdict != Verdict::CannotBeMade {
        return label.to_owned();
    }
    let accepted = line.check.accepted(line.printed.unwrap_or(f64::NAN));
    let wide = format!("the interval is wider than ± {}", plain(accepted.needs));
    let measured = if line.ours.mean().is_nan() {
        "nothing was measured"
    } else {
        wide.as_str()
    };
    format!("{label}: {}", line.missing.unwrap_or(measured))
}

fn agreeing(check: Check) -> String {
    match check {
        Check::Within(tolerance) => format!("± {}", plain(tolerance)),
        Check::Relative(share) => format!("± {} %", plain(share * 100.0)),
        Check::AtLeast(least) => format!("≥ {}", plain(least)),
        Check::AtMost(most) => format!("≤ {}", plain(most)),
    }
}

/// The effects of variants on values that differ. Bold are those with which the value would hold.
fn tried(text: &mut String, causes: &Causes) {
    let _ = writeln!(
        text,
        "What was tried, and by how much it moves ours, in the unit of the value; in bold where the value then holds:\n"
    );
    let variants = causes.variants.join(" | ");
    let _ = writeln!(text, "| what | printed | ours | {variants} |");
    let _ = writeln!(
        text,
        "|---|---|---{}|",
        "|---".repeat(causes.variants.len())
    );
    for row in &causes.rows {
        let effects = row.effects.iter().map(|effect| {
            let difference = sample(&effect.difference);
            match effect.verdict {
                Verdict::Holds => format!("**{difference}**"),
                _ => difference,
            }
        });
        let effects: Vec<String> = effects.collect();
        let printed = row.line.printed.map_or(String::from("–"), number);
        let (what, ours) = (&row.line.what, sample(&row.line.ours));
        let _ = writeln!(
            text,
            "| {what} | {printed} | {ours} | {} |",
            effects.join(" | ")
        );
    }
    text.push('\n');
}

fn picture(text: &mut String, series: &Series) {
    let _ = writeln!(text, "In a picture, not compared. {}:\n", series.about);
    let _ = writeln!(text, "| {} |", series.columns.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(series.columns.len()));
    for (name, row) in &series.rows {
        let values: Vec<String> = row.iter().map(sample).collect();
        let _ = writeln!(text, "| {name} | {} |", values.join(" | "));
    }
    text.push('\n');
}

/// Values of our own specification.
fn references(text: &mut String, results: &[Result<'_>]) {
    let has_some = |(_, _, findings): &&Result<'_>| !findings.references.is_empty();
    if !results.iter().any(|result| has_some(&result)) {
        return;
    }
    let _ = writeln!(
        text,
        "## {REFERENCES}\n\n\
         No paper prints these values. This project's specification computed them from the papers' equations by another \
         program, so that they check the code and not a paper.\n"
    );
    for (_, figure, findings) in results.iter().filter(has_some) {
        let _ = writeln!(
            text,
            "### {}: {}\n\n{}\n",
            figure.id, figure.title, figure.about
        );
        text.push_str("| what | reference (ours) | computed | off | tolerance | verdict |\n|---|---|---|---|---|---|\n");
        for row in &findings.references {
            let _ = writeln!(text, "| {} |", of_reference(row));
        }
        text.push('\n');
    }
}

fn of_reference(row: &Reference) -> String {
    // As many digits as the tolerance has, and some more.
    let digits = match row.tolerance {
        tolerance if tolerance > 0.0 && tolerance < 1e-6 => Some(9),
        tolerance if tolerance > 0.0 && tolerance < 0.01 => Some(6),
        _ => None,
    };
    let number = |value: f64| digits.map_or_else(|| number(value), |d| number_with(value, d));
    let off = row.ours - row.value;
    let off = if off.abs() < 1e-9 { 0.0 } else { off };
    format!(
        "{} | {} | {} | {} | ± {} | {}",
        row.what,
        number(row.value),
        number(row.ours),
        self::number(off),
        plain(row.tolerance),
        row.verdict().label()
    )
}

/// A tolerance as it was written.
fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        format!("{value:e}")
    } else {
        number(value)
    }
}

fn sample(sample: &Sample) -> String {
    let half = sample.half_width();
    let half = half.map_or(String::new(), |half| format!(" ± {}", coarse(half)));
    format!("{}{half}", number(sample.mean()))
}

/// Half an interval needs no more than two significant digits.
fn coarse(value: f64) -> String {
    let digits = if value >= 1.0 { 1 } else { 2 };
    number_with(value, digits)
}

/// With all significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    let digits = if size >= 1000.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 0.01 || size == 0.0 {
        4
    } else {
        6
    };
    number_with(value, digits)
}

fn number_with(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_say_something() {
        let cases = [
            (0.48921, "0.4892"),
            (12_345.6, "12346"),
            (66.25, "66.2"),
            (100.0, "100"),
            (0.0, "0"),
            (-0.000_012_3, "-0.000012"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(plain(1e-4), "1e-4");
    }

    fn findings() -> Findings {
        let line = |ours, check| Line::new("met, %", "Figure 4", 90.0, Sample(ours), check);
        let differing = line(vec![70.0, 70.2], Check::Within(5.0));
        let effect = super::super::causes::Effect {
            difference: Sample(vec![19.0, 19.2]),
            verdict: Verdict::Holds,
        };
        Findings {
            lines: vec![
                differing.clone(),
                line(vec![70.0, 100.0], Check::Within(5.0)),
                line(vec![80.0, 101.0], Check::Within(5.0)),
                line(vec![70.0, 84.0], Check::AtLeast(85.0)),
                Line {
                    missing: Some("no such trace"),
                    ..line(Vec::new(), Check::Within(5.0))
                },
            ],
            gates: vec![Gate::not_below(
                "a over b",
                &Sample(vec![2.0, 3.0]),
                &Sample(vec![1.0, 1.0]),
            )],
            references: vec![Reference {
                what: "h(2)".into(),
                value: 1.5,
                ours: 1.500_01,
                tolerance: 1e-4,
            }],
            series: vec![Series::new(
                "Figure 8",
                ["time", "ours"],
                vec![("0 to 10 %".into(), vec![Sample::exact(40.0)])],
            )],
            causes: Some(Causes {
                variants: vec!["launch 6 s".into()],
                rows: vec![super::super::causes::Row {
                    line: differing,
                    effects: vec![effect],
                }],
            }),
            not_run: vec!["the rest: no data".into()],
        }
    }

    #[test]
    fn a_page_has_verdicts_reasons_and_effects() {
        let paper = &super::super::PAPERS[0];
        let figure = &paper.figures[0];
        let scale = Scale {
            seed: 0,
            seeds: 2,
            jobs: 1.0,
            traces: None,
            threads: 2,
        };
        let names = ["x".into()];
        let page = page(&names, &scale, "abc", &[(paper, figure, findings())]);
        for part in [
            "`shed-lab reproduce x --seed 0 --seeds 2 --scale 1`",
            "The code that ran is of commit `abc`.",
            "| met, % | Figure 4 | 90 | 70.1 ± 1.3 | -19.9 | ± 5 | **differs** |",
            "| met, % | Figure 4 | 90 | 85 ± 190.6 | -5 | ± 5 | holds, in a wide interval |",
            "| ≥ 85 | cannot be made: the interval is wider than ± 10 |",
            "| ± 5 | cannot be made: no such trace |",
            "| a over b | 1.5 ± 6.4 | 0 | holds, in a wide interval |",
            "Not run: the rest: no data.",
            "| what | printed | ours | launch 6 s |",
            "| met, % | 90 | 70.1 ± 1.3 | **19.1 ± 1.3** |",
            "| 0 to 10 % | 40 |",
            "| h(2) | 1.5 | 1.50001 | 0.00001 | ± 1e-4 | holds |",
            "No paper prints the 1 [reference",
            &format!("| {} | 2 | 2 | 1 | 2 | 1 | 1 | 0 | 0 |", paper.id),
        ] {
            assert!(page.contains(part), "`{part}` is not in\n{page}");
        }
    }
}
