//! The outputs on the page of the reference are those of the program. `SHED_GOLDEN=write` writes them.

use std::fs;
use std::path::Path;

use regex::Regex;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/kubectl-shed.md"
);
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/manifests");
/// Instants are those of the run, and differ.
const INSTANT: &str = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ";

/// Each block of the page that runs a verb without a cluster: the command line, and its place in the page.
fn blocks(page: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let fence = "```console\n$ kubectl shed ";
    let starts = page.match_indices(fence).map(|(at, _)| at + fence.len());
    let blocks = starts.map(|start| {
        let line = page[start..].find('\n').unwrap() + start + 1;
        let end = page[line..].find("```").unwrap() + line;
        (page[start..line].trim().to_owned(), line..end)
    });
    let offline = |(command, _): &(String, _)| {
        ["check ", "adopt "]
            .iter()
            .any(|verb| command.starts_with(verb))
    };
    blocks.filter(offline).collect()
}

#[test]
fn outputs_on_the_page_are_those_of_the_program() {
    let page = fs::read_to_string(PAGE).unwrap();
    let blocks = blocks(&page);
    assert_eq!(blocks.len(), 3);
    let mut written = page.clone();
    let instant = Regex::new(INSTANT).unwrap();
    for (command, place) in blocks.into_iter().rev() {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let out = super::run_in(Path::new(MANIFESTS), &arguments).out;
        let same = instant.replace_all(&page[place.clone()], "T") == instant.replace_all(&out, "T");
        if !same {
            written.replace_range(place, &out);
        }
    }
    if std::env::var_os("SHED_GOLDEN").is_some_and(|value| value == "write") {
        fs::write(PAGE, &written).unwrap();
    } else {
        assert_eq!(page, written, "run this test with SHED_GOLDEN=write");
    }
}
