//! The page: per paper one table of values, its orderings, the flags of each figure and the set-ups
//! that were tried.

use std::fmt::Write as _;

use super::findings::{Check, Findings, Gate, Line, Sample, Trials, Verdict};
use super::lab::Scale;
use super::{Figure, Paper};

/// A figure with its results.
pub type Result<'a> = (&'a Paper, &'a Figure, Findings);

const LEGEND: &str = "\
*Ours* is the mean over seeds, ± half of its 95 % interval; a value without one is a closed form. *Ratio* is ours over \
published, *off* ours less published. A check *holds*, *differs*, or is *open* where it fails by no more than half of that \
interval. An ordering is judged on differences paired by seed. *Reported* values are held against nothing: the paper gives \
none, or it depends on what the paper does not say. Where a figure differs, *what was tried* has other set-ups; the one nearest \
to the published values (least mean distance) is in bold.\n\n";

/// The whole page in Markdown.
pub fn page(names: &[String], scale: &Scale, results: &[Result<'_>]) -> String {
    let mut text = format!(
        "# The papers' figures, run again\n\nWritten by `shed-lab reproduce {} --seed {} --seeds {} --scale {}`.\n\n{LEGEND}",
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
    text.push_str(&summary(&papers, results));
    for paper in papers {
        let of_paper: Vec<(&Figure, &Findings)> = results
            .iter()
            .filter(|(other, _, _)| other.id == paper.id)
            .map(|(_, figure, findings)| (*figure, findings))
            .collect();
        section(&mut text, paper, &of_paper);
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

/// Number of checks and orderings per verdict.
fn summary(papers: &[&Paper], results: &[Result<'_>]) -> String {
    let mut text = String::from(
        "| paper | values: hold | open | differ | reported | orderings: hold | open | differ |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for paper in papers {
        let of_paper = || results.iter().filter(|(other, _, _)| other.id == paper.id);
        let lines = of_paper().flat_map(|(_, _, findings)| &findings.lines);
        let lines: Vec<Verdict> = lines.map(Line::verdict).collect();
        let gates = of_paper().flat_map(|(_, _, findings)| &findings.gates);
        let gates: Vec<Verdict> = gates.map(Gate::verdict).collect();
        let count = |all: &[Verdict], wanted| all.iter().filter(|v| **v == wanted).count();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            paper.id,
            count(&lines, Verdict::Holds),
            count(&lines, Verdict::Open),
            count(&lines, Verdict::Differs),
            count(&lines, Verdict::Reported),
            count(&gates, Verdict::Holds),
            count(&gates, Verdict::Open),
            count(&gates, Verdict::Differs),
        );
    }
    text.push('\n');
    text
}

fn section(text: &mut String, paper: &Paper, figures: &[(&Figure, &Findings)]) {
    let _ = writeln!(text, "## {}: {}\n", paper.id, paper.title);
    if figures
        .iter()
        .any(|(_, findings)| !findings.lines.is_empty())
    {
        text.push_str(
            "| figure | what | published | ours | ratio | off | check | verdict |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for (figure, findings) in figures {
            for line in &findings.lines {
                let _ = writeln!(text, "| {} | {} |", figure.id, of_line(line));
            }
        }
        text.push('\n');
    }
    if figures
        .iter()
        .any(|(_, findings)| !findings.gates.is_empty())
    {
        text.push_str(
            "| figure | ordering | difference | at least | verdict |\n|---|---|---|---|---|\n",
        );
        for (figure, findings) in figures {
            for gate in &findings.gates {
                let difference = sample(&gate.difference);
                let margin = number(gate.margin);
                let (claim, verdict) = (&gate.claim, gate.verdict().label());
                let _ = writeln!(
                    text,
                    "| {} | {claim} | {difference} | {margin} | {verdict} |",
                    figure.id
                );
            }
        }
        text.push('\n');
    }
    for (figure, findings) in figures {
        let _ = writeln!(
            text,
            "**{}: {}.** {}\n",
            figure.id, figure.title, figure.about
        );
        for reason in &findings.not_run {
            let _ = writeln!(text, "- Not run: {reason}");
        }
        if !findings.not_run.is_empty() {
            text.push('\n');
        }
        for trials in &findings.trials {
            tried(text, trials);
        }
    }
}

/// Number of digits, if the value is compared with a published value to four digits or more.
fn digits_of(line: &Line) -> Option<usize> {
    match line.check {
        Check::Within(tolerance) if tolerance < 1e-6 && tolerance > 0.0 => Some(9),
        Check::Within(tolerance) if tolerance < 0.01 && tolerance > 0.0 => Some(6),
        _ => None,
    }
}

fn of_line(line: &Line) -> String {
    let digits = digits_of(line);
    let number = |value: f64| digits.map_or_else(|| number(value), |d| number_with(value, d));
    let sample = |of: &Sample| digits.map_or_else(|| sample(of), |d| number_with(of.mean(), d));
    let ours = line.ours.mean();
    let (published, ratio, off) = match line.published {
        None => (String::from("–"), String::new(), String::new()),
        Some(published) => {
            let ratio = if published == 0.0 {
                String::new()
            } else {
                format!("{:.3}", ours / published)
            };
            // Rounding errors of a closed form are nothing to be read.
            let off = ours - published;
            let off = if off.abs() < 1e-9 { 0.0 } else { off };
            (number(published), ratio, number(off))
        }
    };
    format!(
        "{} | {published} | {} | {ratio} | {off} | {} | {}",
        line.what,
        sample(&line.ours),
        check(line.check),
        line.verdict().label()
    )
}

fn check(check: Check) -> String {
    match check {
        Check::Within(tolerance) => format!("± {}", plain(tolerance)),
        Check::Relative(share) => format!("± {} %", plain(share * 100.0)),
        Check::AtLeast(least) => format!("≥ {}", plain(least)),
        Check::AtMost(most) => format!("≤ {}", plain(most)),
        Check::Report => String::new(),
    }
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

fn tried(text: &mut String, trials: &Trials) {
    let _ = writeln!(text, "What was tried: {}.\n", trials.about);
    let names = trials
        .columns
        .iter()
        .map(|(name, published)| match published {
            Some(published) => format!("{name} ({})", number(*published)),
            None => name.clone(),
        });
    let names: Vec<String> = names.collect();
    let has_distance = trials
        .columns
        .iter()
        .any(|(_, published)| published.is_some());
    let (head, rule) = if has_distance {
        (" mean distance |", "---|")
    } else {
        ("", "")
    };
    let _ = writeln!(text, "| set-up | {} |{head}", names.join(" | "));
    let _ = writeln!(text, "|---{}|{rule}", "|---".repeat(names.len()));
    let nearest = trials.nearest();
    for (at, (set_up, row)) in trials.rows.iter().enumerate() {
        let values: Vec<String> = row.iter().map(sample).collect();
        let set_up = if nearest == Some(at) {
            format!("**{set_up}**")
        } else {
            set_up.clone()
        };
        let distance = trials.distance(row);
        let distance = distance.map_or(String::new(), |d| format!(" {} |", number(d)));
        let _ = writeln!(text, "| {set_up} | {} |{distance}", values.join(" | "));
    }
    text.push('\n');
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

    #[test]
    fn a_page_has_the_verdicts_and_what_was_tried() {
        let findings = Findings {
            lines: vec![Line::new(
                "met, %",
                90.0,
                Sample(vec![70.0, 72.0]),
                Check::Within(5.0),
            )],
            gates: vec![Gate::not_below(
                "a over b",
                &Sample(vec![2.0, 3.0]),
                &Sample(vec![1.0, 1.0]),
            )],
            trials: vec![Trials {
                about: "launches".into(),
                columns: vec![("met, %".into(), Some(90.0))],
                rows: vec![
                    ("launch 60 s".into(), vec![Sample::exact(71.0)]),
                    ("launch 6 s".into(), vec![Sample::exact(89.0)]),
                ],
            }],
            not_run: vec!["the rest: no data".into()],
        };
        let paper = &super::super::PAPERS[0];
        let figure = &paper.figures[0];
        let scale = Scale {
            seed: 0,
            seeds: 2,
            jobs: 1.0,
            traces: None,
            threads: 2,
        };
        let page = page(&["x".into()], &scale, &[(paper, figure, findings)]);
        for part in [
            "`shed-lab reproduce x --seed 0 --seeds 2 --scale 1`",
            "| met, % | 90 | 71 ± 12.7 | 0.789 | -19 | ± 5 | **differs** |",
            "| a over b | 1.5 ± 6.4 | 0 | holds |",
            "- Not run: the rest: no data",
            "| launch 60 s | 71 | 19 |",
            "| **launch 6 s** | 89 | 1 |",
            &format!("| {} | 0 | 0 | 1 | 0 | 1 | 0 | 0 |", paper.id),
        ] {
            assert!(page.contains(part), "`{part}` is not in\n{page}");
        }
    }
}
