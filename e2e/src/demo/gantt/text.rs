//! The chart in a terminal.

use super::{Bar, Chart, End};

/// Columns before the bars.
const LABEL: usize = 24;
/// Columns behind the bars, for notes.
const NOTE: usize = 18;

/// The chart in lines of at most `width` columns.
pub fn text(chart: &Chart, width: usize) -> String {
    let columns = width.saturating_sub(LABEL + NOTE).max(20);
    let column = |seconds: f64| (seconds / chart.seconds() * columns as f64) as usize;
    let deadline = column(chart.deadline);
    let head = format!("deadline {:.0} s", chart.deadline);
    let mut lines = vec![format!("{:LABEL$}{:deadline$}▼ {head}", "", "")];
    let mut task = None;
    for bar in &chart.bars {
        let number = if task == Some(bar.task) {
            String::new()
        } else {
            format!("task {}", bar.task)
        };
        task = Some(bar.task);
        let label = format!("  {number:<8}{:<9}{:<5}", bar.kind, bar.node);
        let (from, to) = (column(bar.from), column(bar.to));
        let cells = (0..=columns).map(|at| cell(bar, at, from, to, deadline));
        let line = format!("{label:<LABEL$}{}{}", cells.collect::<String>(), note(bar));
        lines.push(line.trim_end().to_owned());
    }
    lines.push("  █ won   ░ stopped   ! failed   │ deadline".to_owned());
    lines.join("\n") + "\n"
}

fn cell(bar: &Bar, at: usize, from: usize, to: usize, deadline: usize) -> char {
    if at >= from && at <= to {
        match bar.end {
            End::Won => '█',
            End::Stopped => '░',
            End::Failed => '!',
        }
    } else if at == deadline {
        '│'
    } else {
        ' '
    }
}

fn note(bar: &Bar) -> String {
    if bar.resumed_at > 0.0 {
        format!(" from {:.0} %", bar.resumed_at * 100.0)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::chart;
    use super::*;

    #[test]
    fn each_attempt_has_a_line_and_the_deadline_a_column() {
        let text = text(&chart(), 63);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("{:24}{:20}▼ deadline 20 s", "", ""));
        assert_eq!(lines[1], "  task 0  original n1   █████████           │");
        assert_eq!(lines[2], "  task 1  original n1   ░░░░░░░░░░░░░       │");
        assert_eq!(
            lines[3],
            "          clone    n2         ████████████  │  from 5 %"
        );
        assert_eq!(lines.len(), 5);
    }
}
