//! The chart as a picture.

use std::fmt::Write;

use super::{Bar, Chart, End};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 760.0;
const TOP: f64 = 50.0;
const ROW: f64 = 20.0;
const BAR: f64 = 14.0;
/// Below the bars: the axis and the legend.
const BOTTOM: f64 = 64.0;

const INK: &str = "#24292f";
const GRID: &str = "#d8dee4";
const DEADLINE: &str = "#d55e00";
const FIRST: &str = "#0072b2";
const CLONE: &str = "#009e73";
const STOPPED: &str = "#c3c9d0";
const FAILED: &str = "#cc79a7";

/// The chart as SVG, on a white ground, so that it is readable on a dark page too.
pub fn svg(chart: &Chart) -> String {
    let bottom = TOP + ROW * chart.bars.len() as f64;
    let height = bottom + BOTTOM;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" role="img" aria-label="Attempts of a job over time">
<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>
"##
    );
    axis(&mut svg, chart, bottom);
    let mut task = None;
    for (row, bar) in chart.bars.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        if task != Some(bar.task) {
            text(
                &mut svg,
                14.0,
                y + 11.0,
                "start",
                INK,
                &format!("task {}", bar.task),
            );
        }
        task = Some(bar.task);
        attempt(&mut svg, chart, bar, y);
    }
    let x = x_of(chart, chart.deadline);
    let _ = writeln!(
        svg,
        r#"<line x1="{x:.1}" y1="{:.1}" x2="{x:.1}" y2="{bottom:.1}" stroke="{DEADLINE}" stroke-width="2" stroke-dasharray="6 4"/>"#,
        TOP - 10.0
    );
    let deadline = format!("deadline {:.0} s", chart.deadline);
    text(&mut svg, x, TOP - 16.0, "middle", DEADLINE, &deadline);
    legend(&mut svg, bottom + 50.0);
    svg + "</svg>\n"
}

fn x_of(chart: &Chart, seconds: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * seconds / chart.seconds()
}

fn color(bar: &Bar) -> &'static str {
    match bar.end {
        End::Stopped => STOPPED,
        End::Failed => FAILED,
        End::Won if bar.kind == "original" => FIRST,
        End::Won => CLONE,
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, color: &str, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{color}">{words}</text>"#
    );
}

/// Lines at multiples of 1, 2 or 5 seconds times a power of ten, at most ten of them.
fn axis(svg: &mut String, chart: &Chart, bottom: f64) {
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].iter().cycle() {
        if chart.seconds() / step <= 10.0 {
            break;
        }
        step *= factor;
    }
    let mut seconds = 0.0;
    while seconds <= chart.seconds() {
        let x = x_of(chart, seconds);
        let _ = writeln!(
            svg,
            r#"<line x1="{x:.1}" y1="{TOP:.1}" x2="{x:.1}" y2="{bottom:.1}" stroke="{GRID}"/>"#
        );
        text(
            svg,
            x,
            bottom + 16.0,
            "middle",
            INK,
            &format!("{seconds:.0} s"),
        );
        seconds += step;
    }
}

fn attempt(svg: &mut String, chart: &Chart, bar: &Bar, y: f64) {
    let place = format!("{} on {}", bar.kind, bar.node);
    text(svg, LEFT - 8.0, y + 11.0, "end", INK, &place);
    let (from, to) = (x_of(chart, bar.from), x_of(chart, bar.to));
    let (width, fill) = ((to - from).max(1.0), color(bar));
    let _ = writeln!(
        svg,
        r#"<rect x="{from:.1}" y="{y:.1}" width="{width:.1}" height="{BAR}" rx="2" fill="{fill}"/>"#
    );
    if bar.resumed_at > 0.0 {
        let note = format!("resumes at {:.0} %", bar.resumed_at * 100.0);
        text(svg, to + 6.0, y + 11.0, "start", INK, &note);
    }
}

fn legend(svg: &mut String, y: f64) {
    let entries = [
        (FIRST, "first attempt that won"),
        (CLONE, "clone or retry that won"),
        (STOPPED, "stopped by shed"),
        (FAILED, "failed"),
    ];
    let mut x = LEFT;
    for (fill, words) in entries {
        let top = y - 10.0;
        let _ = writeln!(
            svg,
            r#"<rect x="{x:.1}" y="{top:.1}" width="12" height="12" rx="2" fill="{fill}"/>"#
        );
        text(svg, x + 18.0, y, "start", INK, words);
        x += 170.0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::chart;
    use super::*;

    #[test]
    fn each_attempt_is_drawn_in_the_color_of_its_end() {
        let svg = svg(&chart());
        let count = |words: &str| svg.matches(words).count();
        // One of each in the legend.
        assert_eq!(count(&format!(r#"fill="{FIRST}""#)), 2);
        assert_eq!(count(&format!(r#"fill="{CLONE}""#)), 2);
        assert_eq!(count(&format!(r#"fill="{STOPPED}""#)), 2);
        assert_eq!(count("resumes at 5 %"), 1);
        assert_eq!(count("deadline 20 s"), 1);
        assert_eq!(count("task 1<"), 1);
        assert_eq!(count("<svg"), count("</svg>"));
    }

    #[test]
    fn the_axis_has_at_most_eleven_lines() {
        for deadline in [1.0, 20.0, 59.0, 300.0, 86_400.0] {
            let mut chart = chart();
            chart.deadline = deadline;
            let lines = svg(&chart).matches(&format!(r#"stroke="{GRID}""#)).count();
            assert!((2..=11).contains(&lines), "{lines} lines for {deadline} s");
        }
    }
}
