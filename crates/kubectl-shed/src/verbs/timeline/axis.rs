//! Round times on an axis. Pure.

use jiff::Timestamp;

use super::chart::Chart;

/// Distances of two marks in seconds.
const STEPS: [i64; 18] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
];

/// At most this number of round times within the chart, with their texts.
pub fn marks(chart: &Chart<'_>, most: usize) -> Vec<(i64, String)> {
    let span = chart.to - chart.from;
    let most = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
    let fits = |step: &&i64| span / **step < most;
    let days = (span / most / 86_400 + 1) * 86_400;
    let step = STEPS.iter().find(fits).copied().unwrap_or(days);
    let first = chart.from.div_euclid(step) * step;
    let format = match step {
        ..60 => "%H:%M:%S",
        60..86_400 => "%H:%M",
        _ => "%m-%d",
    };
    let marks = (0..).map(|number| first + number * step);
    let marks = marks
        .skip_while(|time| *time < chart.from)
        .take_while(|time| *time <= chart.to);
    let named = marks.filter_map(|time| {
        let instant = Timestamp::from_second(time).ok()?;
        Some((time, instant.strftime(format).to_string()))
    });
    named.collect()
}
