use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::api::{self, reason};

/// Values of the constants that a module of conditions.rs declares.
fn declared(source: &str) -> BTreeSet<&str> {
    let lines = source.lines().map(str::trim);
    let values = lines.filter(|line| line.starts_with("pub const "));
    let values = values.filter_map(|line| line.split('"').nth(1));
    values.collect()
}

#[test]
fn every_condition_and_reason_has_a_row_and_no_row_has_another() {
    let source = include_str!("../../api/conditions.rs");
    let (types, reasons) = source.split_once("pub mod reason").unwrap();
    let reported: BTreeSet<&str> = TABLE.iter().map(|row| row.reason).collect();
    assert_eq!(reported, declared(reasons));
    let rows = TABLE.iter().flat_map(|row| row.conditions);
    let reported: BTreeSet<&str> = rows.copied().collect();
    assert_eq!(reported, declared(types));
}

#[test]
fn a_state_is_reported_in_one_way() {
    let mut seen = BTreeSet::new();
    for row in TABLE {
        for condition in row.conditions {
            assert!(seen.insert((condition, row.reason)), "{row:?}");
        }
    }
}

#[test]
fn what_blocks_a_job_says_since_when_and_what_would_help() {
    for row in TABLE {
        let words = row.words("the detail", Instant(0), None);
        let is_filled = !words.is_empty() && !words.contains("{}");
        assert!(is_filled, "{words}");
        let says_since = words.ends_with(" (since 1970-01-01T00:00:00Z)");
        let is_blocked = row.says == Says::Blocked;
        assert_eq!(says_since, is_blocked, "{words}");
        if is_blocked {
            assert!(!row.help.is_empty(), "{words}");
            let names_it = row.help == NAMED || words.contains(row.help);
            assert!(names_it, "{words}");
        }
        let takes_back = row.says == Says::Over;
        assert!(!takes_back || row.status == "False", "{row:?}");
    }
}

#[test]
fn since_when_stays_while_the_state_does() {
    let row = row(api::ATTEMPTS_BLOCKED, reason::QUOTA_EXCEEDED).unwrap();
    let first = row.words("exceeded quota", Instant(5000), None);
    assert!(
        first.starts_with("exceeded quota; raise the ResourceQuota")
            && first.ends_with("(since 1970-01-01T00:00:05Z)"),
        "{first}"
    );
    let later = row.words("exceeded quota", Instant(90_000), Some(&first));
    assert_eq!(later, first);
    // The message of an earlier operator had no start.
    let after_another = row.words("exceeded quota", Instant(90_000), Some("exceeded quota"));
    assert!(after_another.ends_with("(since 1970-01-01T00:01:30Z)"));
}

/// The table of docs/reference/conditions.md.
fn page() -> String {
    let mut page = String::from(
        "| condition | status | reason | message | what would help |\n|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let conditions: Vec<String> = row
            .conditions
            .iter()
            .map(|one| format!("`{one}`"))
            .collect();
        let help = match row.help {
            NAMED => "named in the message",
            help => help,
        };
        let cells = [
            &conditions.join(", "),
            row.status,
            &format!("`{}`", row.reason),
            &row.message.replace("{}", "…"),
            &help.replace("{}", "…"),
        ];
        page.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    page
}

#[test]
fn the_page_of_conditions_shows_this_table() {
    let shown = include_str!("../../../docs/reference/conditions.md");
    let page = page();
    assert!(
        shown.contains(&page),
        "docs/reference/conditions.md lacks:\n{page}"
    );
}

#[test]
fn long_lists_and_words_of_others_are_cut() {
    let mut indexes = IndexSet::new();
    assert_eq!(some_of(&indexes), "");
    for index in (0..100_000).step_by(2) {
        indexes.insert(shed_core::ids::TaskIndex(index));
    }
    let said = some_of(&indexes);
    assert!(
        said.starts_with("0,2,4,") && said.ends_with(",… (50000 in all)"),
        "{said}"
    );
    assert!(said.len() < 230, "{said}");
    let row = row(api::ATTEMPTS_BLOCKED, reason::UNSCHEDULABLE).unwrap();
    let said = row.words(&"é".repeat(5000), Instant(0), None);
    assert!(said.len() < 1500, "{}", said.len());
}

/// The bytes that [`crate::bounds::Bounds`] reserves for conditions suffice for all conditions at
/// once, each at its longest.
#[test]
fn all_conditions_at_their_longest_fit_into_the_budget() {
    let others = "\u{1}".repeat(5_000);
    let message = |row: &Row| row.words(&others, Instant(0), None);
    let condition = |type_: &str, row: &Row| Condition {
        type_: type_.to_owned(),
        status: "Unknown".to_owned(),
        reason: row.reason.to_owned(),
        message: message(row),
        observed_generation: Some(i64::MAX),
        last_transition_time: clock::time(Instant(0)),
    };
    let mut longest: BTreeMap<&str, Condition> = BTreeMap::new();
    for row in TABLE {
        for type_ in row.conditions {
            let condition = condition(type_, row);
            let before = longest.get(type_).map_or(0, crate::size::bytes);
            if crate::size::bytes(&condition) > before {
                longest.insert(type_, condition);
            }
        }
    }
    let all: Vec<Condition> = longest.into_values().collect();
    let bytes = crate::size::bytes(&all);
    assert!(bytes <= crate::bounds::CONDITIONS, "{bytes}");
}
