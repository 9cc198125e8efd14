//! The timeline as a page that needs no other file: the picture, and a table for readers who do not see it. Pure.

use super::chart::Chart;
use super::svg::{self, escape};
use crate::verbs::status::StatusView;

const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;\
padding:0 1rem;background:#fff;color:#1f2328}svg{max-width:100%;height:auto}ul{padding-left:1.2rem}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}}";

/// The page.
pub fn render(view: &StatusView, chart: Option<&Chart>) -> String {
    let title = escape(&svg::title(view));
    let picture = svg::render(view, chart);
    let rows = chart.map_or(&[][..], |chart| &chart.rows);
    let attempts = rows
        .iter()
        .map(|row| format!("<li>{}</li>\n", escape(&row.words)));
    let attempts: String = attempts.collect();
    let notes = view
        .notes
        .iter()
        .map(|note| format!("<p>{}</p>\n", escape(note)));
    let notes: String = notes.collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n{picture}{notes}<h2>Attempts</h2>\n<ul>\n{attempts}</ul>\n</body>\n</html>\n"
    )
}
