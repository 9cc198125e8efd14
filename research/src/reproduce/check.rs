//! A fresh page compared with the committed one.

use super::render::COMMIT;

/// Parts that are not compared, or not to the digit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leniency {
    /// Figures that were not run here, because a trace is missing.
    pub not_run: Vec<&'static str>,
    /// Papers of these figures: their counts are not those of the page.
    pub not_counted: Vec<&'static str>,
    /// Figures whose last digits depend on the processor. Their words and verdicts are compared.
    pub inexact: Vec<&'static str>,
}

/// The most differences that are returned.
const DIFFERENCES_MAX: usize = 20;

/// Lines that differ, each as it is committed and as it is now; none if the pages are equal.
pub fn differences(committed: &str, fresh: &str, leniency: &Leniency) -> Vec<String> {
    let [old, new] = [committed, fresh].map(|page| compared_lines(page, leniency));
    let mut differences = Vec::new();
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (old.next(), new.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let line = |line: Option<&String>| line.cloned().unwrap_or_else(|| "(ends)".into());
                differences.push(format!("- {}\n+ {}", line(a), line(b)));
            }
        }
        if differences.len() == DIFFERENCES_MAX {
            differences.push("and perhaps more".to_owned());
            break;
        }
    }
    differences
}

/// The lines of a page that must be equal. A line of an inexact figure has `#` for each number.
fn compared_lines(page: &str, leniency: &Leniency) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut is_run, mut is_exact) = (true, true);
    for line in page.lines() {
        if line.starts_with("## ") {
            (is_run, is_exact) = (true, true);
        }
        if let Some(heading) = line.strip_prefix("### ") {
            let id = heading.split(':').next().unwrap_or_default();
            is_run = !leniency.not_run.contains(&id);
            is_exact = !leniency.inexact.contains(&id);
        }
        let is_count = |paper: &&str| line.starts_with(&format!("| {paper} |"));
        if !is_run || line.starts_with(COMMIT) || leniency.not_counted.iter().any(is_count) {
            continue;
        }
        let line = if is_exact {
            line.to_owned()
        } else {
            without_numbers(line)
        };
        lines.push(line);
    }
    lines
}

fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for character in line.chars() {
        let is_number = character.is_ascii_digit() || matches!(character, '.' | '-');
        if !is_number {
            text.push(character);
        } else if !text.ends_with('#') {
            text.push('#');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Page
The code that ran is of commit `abc`.
## Summary
| laser | 3 | 1 |
| dollymp | 4 | 0 |
## laser
### L-1: one
| met | 90 | 70.1 ± 1.3 | **differs** |
### L-T1: two
| loss | 4.1 ± 0.25 | holds |
## dollymp
### D1: three
| met | 20 | 12.7 ± 2 | holds |
";

    #[test]
    fn pages_are_equal_up_to_the_line_of_the_commit() {
        let exact = Leniency::default();
        let other = PAGE.replace("`abc`", "`def`");
        assert_eq!(differences(PAGE, &other, &exact), Vec::<String>::new());
        for (from, to) in [
            ("70.1", "70.2"),
            ("**differs**", "holds"),
            ("| 3 | 1 |", "| 4 | 0 |"),
            ("4.1 ±", "4.2 ±"),
            ("### D1: three\n", ""),
            ("12.7 ± 2 | holds |\n", "12.7 ± 2 | holds |\n| one more |\n"),
        ] {
            let other = PAGE.replace(from, to);
            assert_ne!(
                differences(PAGE, &other, &exact),
                Vec::<String>::new(),
                "{from}"
            );
        }
    }

    #[test]
    fn a_difference_shows_both_lines() {
        let other = PAGE.replace("70.1", "70.2");
        let [difference] = &differences(PAGE, &other, &Leniency::default())[..] else {
            panic!("one line differs");
        };
        let lines: Vec<&str> = difference.lines().collect();
        assert!(lines[0].starts_with("- | met | 90 | 70.1"), "{difference}");
        assert!(lines[1].starts_with("+ | met | 90 | 70.2"), "{difference}");
    }

    #[test]
    fn figures_without_a_trace_are_left_out_with_their_counts() {
        let leniency = Leniency {
            not_run: vec!["D1"],
            not_counted: vec!["dollymp"],
            inexact: Vec::new(),
        };
        let fresh = PAGE.replace("| met | 20 | 12.7 ± 2 | holds |", "Not run: no trace.");
        let fresh = fresh.replace("| dollymp | 4 | 0 |", "| dollymp | 0 | 0 |");
        assert_eq!(differences(PAGE, &fresh, &leniency), Vec::<String>::new());
        let fresh = fresh.replace("| laser | 3 | 1 |", "| laser | 4 | 0 |");
        assert_eq!(differences(PAGE, &fresh, &leniency).len(), 1);
    }

    #[test]
    fn an_inexact_figure_is_compared_by_its_words() {
        let leniency = Leniency {
            inexact: vec!["L-T1"],
            ..Leniency::default()
        };
        let close = PAGE.replace("4.1 ± 0.25", "4 ± 0.3");
        assert_eq!(differences(PAGE, &close, &leniency), Vec::<String>::new());
        let flipped = close.replace("| holds |\n## dollymp", "| **differs** |\n## dollymp");
        assert_eq!(differences(PAGE, &flipped, &leniency).len(), 1);
        let elsewhere = PAGE.replace("70.1", "70.2");
        assert_eq!(differences(PAGE, &elsewhere, &leniency).len(), 1);
    }
}
