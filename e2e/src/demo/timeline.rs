//! The attempts of a job over time, as a picture. Pure.
//!
//! `kubectl shed timeline` draws a job's record in a terminal. Its rows have no nodes and its axis has times of day, but
//! the demo is about one slow node and the seconds since the job's creation.

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use plotters::prelude::{Color, RGBColor, Rectangle, Text, WHITE};
use plotters::style::text_anchor::{HPos, VPos};
use shed_sim::cli::chart::{self, Area, Axis, ChartError, GREY, INK, LIGHT, PALETTE, number, px};

use super::attempt::Attempt;
use super::outcome::winners;

/// Lengths in pixels: of a row, of the space above all rows, and of the space to the left and to the right.
const ROW: f64 = 18.0;
const TOP: f64 = 26.0;
const LEFT: f64 = 206.0;
const RIGHT: f64 = 110.0;
/// Letters of a name.
const NAME_MAX: usize = 32;

/// One attempt, in seconds since the job's creation.
#[derive(Debug, PartialEq)]
struct Lane {
    name: String,
    from: f64,
    to: f64,
    color: RGBColor,
    note: String,
}

/// The picture of a job that has ended, as SVG; the deadline is in seconds since its creation.
pub fn svg(attempts: &[Attempt], created: Timestamp, deadline: f64) -> Result<String> {
    let lanes = lanes(attempts, created);
    let last = lanes.iter().map(|lane| lane.to).fold(deadline, f64::max);
    let axis = Axis::linear("seconds since the job's creation", 0.0, last);
    let height = TOP + ROW * lanes.len() as f64 + chart::BELOW;
    let what = "Attempts of a job over time";
    let drawn = chart::svg(height.ceil() as i32, what, |area| {
        draw(area, &axis, &lanes, deadline)
    });
    drawn.map_err(|error| anyhow!("the picture: {error}"))
}

/// By task and start.
fn lanes(attempts: &[Attempt], created: Timestamp) -> Vec<Lane> {
    let mut all: Vec<&Attempt> = attempts.iter().collect();
    all.sort_by_key(|attempt| (attempt.task, attempt.created));
    let ended = |attempt: &Attempt| attempt.ended.map(|(end, _)| end);
    let last = attempts.iter().filter_map(ended).max();
    let since = |time: Timestamp| time.duration_since(created).as_secs_f64().max(0.0);
    let lane = |attempt: &&Attempt| {
        let end = ended(attempt).or(attempt.deleted).or(last);
        let resumed = match attempt.resumes_at {
            at if at > 0.0 => format!(", from {:.0} %", at * 100.0),
            _ => String::new(),
        };
        let (task, (color, word)) = (attempt.task, fate(attempts, attempt));
        Lane {
            name: format!("task {task}: {} on {}", attempt.kind, attempt.place()),
            from: since(attempt.created),
            to: since(end.unwrap_or(attempt.created)),
            color,
            note: format!("{word}{resumed}"),
        }
    };
    all.iter().map(lane).collect()
}

/// How an attempt ended, and its color.
fn fate(attempts: &[Attempt], attempt: &Attempt) -> (RGBColor, &'static str) {
    let failed = attempt.ended.is_some_and(|(_, code)| code != 0);
    if winners(attempts).any(|winner| winner == attempt) {
        let color = if attempt.kind == "original" { 0 } else { 2 };
        (PALETTE[color], "won")
    } else if failed && attempt.deleted.is_none() {
        (PALETTE[3], "failed")
    } else {
        (GREY, "stopped")
    }
}

fn draw(area: &Area<'_>, axis: &Axis, lanes: &[Lane], deadline: f64) -> Result<(), ChartError> {
    let width = f64::from(chart::WIDTH) - LEFT - RIGHT;
    let x = |seconds: f64| px(LEFT + width * (seconds - axis.low) / (axis.high - axis.low));
    let (top, bottom) = (px(TOP), px(TOP + ROW * lanes.len() as f64));
    let text = |at, words: &str, color, vertical| {
        let style = chart::style(12.0, color, HPos::Center, vertical);
        area.draw(&Text::new(words.to_owned(), at, style))
    };
    // So that it is readable on a dark page too.
    area.fill(&WHITE)?;
    for &tick in &axis.ticks {
        let at = x(tick);
        chart::line(area, vec![(at, top), (at, bottom)], LIGHT, 0.75)?;
        text((at, bottom + px(4.0)), &number(tick), INK, VPos::Top)?;
    }
    let middle = (axis.low + axis.high) / 2.0;
    text((x(middle), bottom + px(20.0)), &axis.name, INK, VPos::Top)?;
    let at = x(deadline);
    chart::line(area, vec![(at, top), (at, bottom)], PALETTE[1], 1.5)?;
    let words = format!("deadline {deadline:.0} s");
    text((at, top - px(3.0)), &words, PALETTE[1], VPos::Bottom)?;
    for (row, lane) in lanes.iter().enumerate() {
        let y = px(TOP + ROW * (row as f64 + 0.5));
        let name = chart::shortened(&lane.name, NAME_MAX);
        chart::text_left(area, (px(LEFT - 8.0), y), &name)?;
        let corners = [(x(lane.from), y - px(6.0)), (x(lane.to), y + px(6.0))];
        area.draw(&Rectangle::new(corners, lane.color.filled()))?;
        chart::text_on_white(area, (x(lane.to) + px(5.0), y), &lane.note)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn attempt(task: u32, number: u32, from: i64, ended: Option<(i64, i32)>) -> Attempt {
        Attempt {
            task,
            number,
            kind: if number == 0 { "original" } else { "clone" }.to_owned(),
            node: Some(format!("n{}", number + 1)),
            created: second(from),
            ended: ended.map(|(end, code)| (second(end), code)),
            resumes_at: if number == 0 { 0.0 } else { 0.05 },
            deleted: ended.is_none().then(|| second(12)),
        }
    }

    /// Task 0 wins by itself, task 1 by its clone.
    fn attempts() -> [Attempt; 3] {
        [
            attempt(1, 1, 6, Some((17, 0))),
            attempt(0, 0, 0, Some((8, 0))),
            attempt(1, 0, 0, None),
        ]
    }

    #[test]
    fn lanes_are_sorted_and_end_as_their_attempts() {
        let lanes = lanes(&attempts(), second(0));
        let reported: Vec<_> = lanes
            .iter()
            .map(|lane| (&*lane.name, lane.from, lane.to, &*lane.note))
            .collect();
        assert_eq!(
            reported,
            [
                ("task 0: original on n1", 0.0, 8.0, "won"),
                ("task 1: original on n1", 0.0, 12.0, "stopped"),
                ("task 1: clone on n2", 6.0, 17.0, "won, from 5 %"),
            ]
        );
        let failed = [attempt(0, 0, 0, Some((3, 1)))];
        assert_eq!(fate(&failed, &failed[0]).1, "failed");
    }

    #[test]
    fn each_attempt_and_the_deadline_are_drawn() {
        let picture = svg(&attempts(), second(0), 20.0).unwrap();
        for words in [
            "deadline 20 s",
            "task 1: clone on n2",
            "won, from 5 %",
            "stopped",
        ] {
            assert_eq!(picture.matches(words).count(), 1, "{words}");
        }
    }
}
