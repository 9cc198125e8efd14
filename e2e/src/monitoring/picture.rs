//! A picture of a dashboard: each panel, plotted from the answer to its queries.

mod panel;
mod units;

use anyhow::{Result, anyhow, ensure};
use plotters::style::text_anchor::{HPos, VPos};
use shed_sim::cli::chart::{self, Area, ChartError, INK, LIGHT, WIDTH, px, shortened};

use super::dashboards::Board;
use plotters::prelude::Text;

/// Panels of a row.
const COLUMNS: usize = 3;
/// Height of a panel in pixels.
const HEIGHT: i32 = 156;
/// Distance between a panel and its frame, in pixels.
const MARGIN: f64 = 8.0;
/// Height of a panel's title in pixels.
const TITLE: f64 = 20.0;
/// Letters of a title.
const TITLE_MAX: usize = 34;
/// Largest size of a picture in bytes.
const BYTES_MAX: usize = 300_000;

/// A rectangle of the picture, in the backend's units.
#[derive(Clone, Copy, Debug)]
struct Frame {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

/// The dashboard as SVG.
pub fn svg(board: &Board) -> Result<String> {
    let rows = board.panels.len().div_ceil(COLUMNS);
    let height = HEIGHT * i32::try_from(rows)?;
    let what = format!("Dashboard {}, from the data of a test run", board.title);
    let drawn = chart::svg(height, &what, |area| draw(area, board));
    let picture = drawn.map_err(|error| anyhow!("{}: {error}", board.uid))?;
    ensure!(
        picture.len() <= BYTES_MAX,
        "the picture of {} has {} bytes, more than {BYTES_MAX}: plot fewer points",
        board.uid,
        picture.len()
    );
    Ok(picture)
}

fn draw(area: &Area<'_>, board: &Board) -> Result<(), ChartError> {
    let width = f64::from(WIDTH) / COLUMNS as f64;
    for (index, panel) in board.panels.iter().enumerate() {
        let left = width * (index % COLUMNS) as f64;
        let top = f64::from(HEIGHT) * (index / COLUMNS) as f64;
        let frame = Frame {
            left: px(left + MARGIN),
            top: px(top + MARGIN + TITLE),
            right: px(left + width - MARGIN),
            bottom: px(top + f64::from(HEIGHT) - MARGIN),
        };
        let style = chart::style(11.0, INK, HPos::Left, VPos::Top);
        let title = shortened(&panel.title, TITLE_MAX);
        let at = (frame.left, px(top + MARGIN));
        area.draw(&Text::new(title, at, style))?;
        let rule = vec![
            (frame.left, frame.top - px(3.0)),
            (frame.right, frame.top - px(3.0)),
        ];
        chart::line(area, rule, LIGHT, 1.0)?;
        panel::draw(area, frame, panel, board.span)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitoring::dashboards::read;
    use crate::monitoring::prometheus::{Series, Span};

    #[test]
    fn every_panel_of_the_dashboards_is_drawn_with_its_data() {
        let folder = crate::command::repository().join("charts/shed/files/dashboards");
        for mut board in read(&folder).unwrap() {
            board.span = Span {
                from: 0.0,
                to: 100.0,
            };
            for query in board.panels.iter_mut().flat_map(|panel| &mut panel.queries) {
                let labels = [("le".to_owned(), "0.5".to_owned())].into();
                let points = (0..100)
                    .map(|at| (f64::from(at), f64::from(at % 7)))
                    .collect();
                query.series = vec![Series { labels, points }];
            }
            let picture = svg(&board).unwrap();
            for panel in &board.panels {
                let title = chart::escape(&shortened(&panel.title, TITLE_MAX));
                assert!(picture.contains(&title), "{title}");
            }
            assert!(!picture.contains("no data"), "{}", board.uid);
        }
    }

    #[test]
    fn a_panel_without_data_says_so() {
        let folder = crate::command::repository().join("charts/shed/files/dashboards");
        let boards = read(&folder).unwrap();
        assert!(svg(&boards[0]).unwrap().contains("no data"));
    }
}
