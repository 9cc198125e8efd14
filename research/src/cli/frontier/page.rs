//! Tables of the frontier and of the bars, in Markdown.

use std::fmt::Write as _;

use super::FrontierArgs;
use super::bars::{Overall, Verdict};
use super::points::Point;
use super::runs::{FROZEN, OWN};
use crate::cli::clone_counts::or_dash;

/// The page of a frontier with its figures.
pub(super) fn frontier(args: &FrontierArgs, points: &[Point], figures: &[String]) -> String {
    let data = args.data.as_deref().and_then(|path| path.file_name());
    let data = data.map_or_else(String::new, |name| {
        format!(" Every point is in `{}`.", name.to_string_lossy())
    });
    let mut text = format!(
        "# Deadlines met at each price of a clone\n\n{}{data}\n\n\
         {OWN} runs at several prices of a clone (`clone_price`, in expected deadlines met). Figures and tables have the share of \
         deadlines met against what it costs. All policies of a panel run on the same seeds. Points outside a panel's range are \
         counted above it.\n\n",
        made_by(
            args,
            &format!(
                "frontier --prices {} --policy '{}'",
                listed(&args.prices),
                args.policy
            )
        )
    );
    for figure in figures {
        let name = figure.rsplit('/').next().unwrap_or(figure);
        let _ = writeln!(text, "![{}]({figure})\n", name.trim_end_matches(".svg"));
    }
    text.push_str("## By price\n\nA cell has the deadlines met in %, and the clones per task.\n\n");
    text.push_str(&price_table(points));
    text
}

/// The page of the bars.
pub(super) fn bars(args: &FrontierArgs, verdicts: &[Verdict], overall: &Overall) -> String {
    format!(
        "# {OWN} against its bars\n\n{}\n\n\
         Differences are deadlines met compared with `{FROZEN}`, in points, paired by seed, ± half of the 95 % interval. A cell \
         gets more seeds until that half is at most 1 point, or up to {} seeds. What exceeds its bar is bold.\n\n{}",
        made_by(
            args,
            &format!("frontier --bars --most-seeds {}", args.most_seeds)
        ),
        args.most_seeds,
        bar_table(verdicts, overall)
    )
}

fn made_by(args: &FrontierArgs, command: &str) -> String {
    let flags = match args.flags.as_str() {
        "" => String::new(),
        flags => format!(" --flags '{flags}'"),
    };
    let revision = args.revision.as_deref();
    let revision = revision.map_or_else(String::new, |revision| format!(" with {revision}"));
    format!(
        "Written by `shed-lab {command} --preset {} --load {} --deadline-factor {} --seed {}..{}{flags}`{revision}.",
        args.preset.join(","),
        args.load.join(","),
        args.deadline_factor,
        args.seed.start,
        args.seed.end,
    )
}

fn listed(prices: &[f64]) -> String {
    let prices: Vec<String> = prices.iter().map(f64::to_string).collect();
    prices.join(",")
}

/// Every point, a line each.
pub(super) fn point_table(points: &[Point]) -> String {
    let mut text = String::from(
        "| preset | load | policy | seeds | met % | to frozen | clones per task | clones per win | slot-seconds | not won | efficient |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for point in points {
        let to_frozen = point.points_to_frozen;
        let to_frozen =
            to_frozen.map_or_else(|| "–".to_owned(), |mean| signed(mean, point.points_half95));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {to_frozen} | {} | {} | {:.0} | {:.0} | {} |",
            point.preset,
            point.load,
            point.policy,
            point.seeds,
            plain(point.met_percent, point.met_half95),
            or_dash(point.clones_per_task, 3),
            or_dash(point.clones_per_win, 1),
            point.slot_seconds,
            point.slot_seconds_not_won,
            if point.is_efficient { "yes" } else { "" },
        );
    }
    text
}

/// A line per preset and load: prices, the frozen version, and the other policy that meets most.
fn price_table(points: &[Point]) -> String {
    let first = points.chunk_by(same_cell).next().unwrap_or_default();
    let prices: Vec<String> = first
        .iter()
        .filter_map(|point| point.clone_price)
        .map(|price| price.to_string())
        .collect();
    let mut text = format!(
        "| preset | load | {} | without prices | best other policy |\n|---|---|{}---|---|\n",
        prices.join(" | "),
        "---|".repeat(prices.len())
    );
    for cell in points.chunk_by(same_cell) {
        let Some(first) = cell.first() else {
            continue;
        };
        let _ = write!(text, "| {} | {} |", first.preset, first.load);
        for point in cell.iter().filter(|point| point.clone_price.is_some()) {
            let _ = write!(text, " {} |", both(point));
        }
        let frozen = cell.iter().find(|point| point.policy == FROZEN);
        let others = cell
            .iter()
            .filter(|point| point.clone_price.is_none() && point.policy != FROZEN);
        let best = others.max_by(|a, b| a.met_percent.total_cmp(&b.met_percent));
        let best = best.map_or_else(
            || "–".to_owned(),
            |best| format!("{}: {}", best.policy, both(best)),
        );
        let frozen = frozen.map_or_else(|| "–".to_owned(), both);
        let _ = writeln!(text, " {frozen} | {best} |");
    }
    text
}

fn same_cell(a: &Point, b: &Point) -> bool {
    (&a.preset, &a.load) == (&b.preset, &b.load)
}

fn both(point: &Point) -> String {
    format!(
        "{:.1} · {}",
        point.met_percent,
        or_dash(point.clones_per_task, 2)
    )
}

/// The cells against their bars, and all of them together.
pub(super) fn bar_table(verdicts: &[Verdict], overall: &Overall) -> String {
    let mut text = String::from(
        "| preset | load | seeds | met % | difference | clones per task | bar | clones per win | bar |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for verdict in verdicts {
        let difference = signed(verdict.difference, verdict.half95);
        let wide = if verdict.is_narrow { "" } else { " (wide)" };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {}{wide} | {} | {} | {} | {} |",
            verdict.preset,
            verdict.load,
            verdict.seeds,
            verdict.met_percent,
            marked(difference, verdict.difference_holds),
            marked(
                or_dash(verdict.clones_per_task, 3),
                verdict.clones_per_task_holds
            ),
            verdict.clones_per_task_bar,
            marked(
                or_dash(verdict.clones_per_win, 1),
                verdict.clones_per_win_holds
            ),
            or_dash(verdict.clones_per_win_bar, 0),
        );
    }
    let mean = marked(
        signed(overall.mean_difference, None),
        overall.mean_difference_holds,
    );
    let _ = writeln!(
        text,
        "\nMean difference over cells: {mean} points. Every bar holds in {} of {} cells.",
        overall.cells_that_hold, overall.cells
    );
    text
}

/// Bold if the bar does not hold.
fn marked(text: String, holds: bool) -> String {
    if holds { text } else { format!("**{text}**") }
}

fn signed(mean: f64, half: Option<f64>) -> String {
    // What rounds to zero has no minus.
    let sign = if mean < -0.005 { "−" } else { "+" };
    format!("{sign}{}", plain_of(mean.abs(), half, 2))
}

fn plain(mean: f64, half: Option<f64>) -> String {
    plain_of(mean, half, 1)
}

fn plain_of(mean: f64, half: Option<f64>, digits: usize) -> String {
    let half = half.map_or_else(String::new, |half| format!(" ± {half:.digits$}"));
    format!("{mean:.digits$}{half}")
}

#[cfg(test)]
mod tests {
    use super::super::bars::overall;
    use super::super::bars::tests::judged;
    use super::super::points::tests::at;
    use super::*;

    #[test]
    fn a_bar_that_does_not_hold_is_bold() {
        let verdicts = [
            judged("G", 200, 50, &[0.2, 0.4]),
            judged("A", 10, 0, &[-2.0, -2.2]),
        ];
        let table = bar_table(&verdicts, &overall(&verdicts));
        for line in [
            "| G | 0.6 | 2 | 90.0 | +0.30 ± 1.27 (wide) | **0.200** | 0.15 | 4.0 | 6 |",
            "| A | 0.6 | 2 | 90.0 | **−2.10 ± 1.27** (wide) | 0.010 | 0.85 | – | – |",
            "Mean difference over cells: **−0.90** points. Every bar holds in 0 of 2 cells.",
        ] {
            assert!(table.contains(line), "{line} is not in\n{table}");
        }
    }

    #[test]
    fn differences_have_a_sign_unless_they_round_to_zero() {
        assert_eq!(signed(-0.004, Some(0.1)), "+0.00 ± 0.10");
        assert_eq!(signed(-0.006, None), "−0.01");
        assert_eq!(signed(0.4, None), "+0.40");
    }

    #[test]
    fn a_line_of_prices_names_the_best_other_policy() {
        let priced = |price: f64, clones: f64, met: f64| Point {
            clone_price: Some(price),
            ..at("shed-prime", clones, met)
        };
        let points = [
            priced(0.0, 1.0, 99.0),
            priced(0.02, 0.5, 98.5),
            at("late", 0.3, 70.0),
            at("shed-plus", 2.0, 95.0),
            at(FROZEN, 1.3, 99.1),
        ];
        let table = price_table(&points);
        for line in [
            "| preset | load | 0 | 0.02 | without prices | best other policy |",
            "| A | 0.6 | 99.0 · 1.00 | 98.5 · 0.50 | 99.1 · 1.30 | shed-plus: 95.0 · 2.00 |",
        ] {
            assert!(table.contains(line), "{line} is not in\n{table}");
        }
    }
}
