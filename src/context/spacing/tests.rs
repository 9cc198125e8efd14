use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

const MIB: usize = 1024 * 1024;

#[test]
fn writes_are_spaced_by_size_and_urgent_ones_by_at_most_250_ms() {
    let next = |bytes, is_urgent| {
        let at = Instant(10_000);
        let last = LedgerRate::default().note(bytes, at);
        last.next(is_urgent).since(at).0
    };
    assert_eq!(next(2_000, false), 0);
    assert_eq!(next(200_000, false), 200);
    assert_eq!(next(200_000, true), 200);
    assert_eq!(next(MIB, false), 1049);
    assert_eq!(next(MIB, true), 250);
    assert_eq!(next(usize::MAX, false), SPACING_MAX.0);
}

/// Bytes that this number of jobs with ledgers of 1 MiB write in a minute, and the longest wait of a small one meanwhile.
fn written(jobs: usize) -> (usize, Span) {
    let rate = LedgerRate::default();
    let mut last: Vec<Option<LastWrite>> = vec![None; jobs];
    let (mut bytes, mut small) = (0, Span(0));
    for at in (0..60_000).step_by(10).map(Instant) {
        for last in &mut last {
            if last.is_none_or(|last| last.next(false) <= at) {
                *last = Some(rate.note(MIB, at));
                bytes += MIB;
            }
        }
        small = small.max(rate.note(2_000, at).next(false).since(at));
    }
    (bytes, small)
}

#[test]
fn all_jobs_together_write_no_more_than_their_bound() {
    // One second is saved up, each job's first write waits for none, and the small ledgers write too.
    let bound = ALL_BYTES_PER_SECOND as usize * 61;
    for jobs in [8, 16] {
        let (bytes, small) = written(jobs);
        assert!(bytes <= bound + jobs * MIB, "{bytes} of {bound}");
        assert!(bytes >= bound * 8 / 10, "{bytes} of {bound}");
        assert_eq!(small, Span(0), "small ledgers wait for none");
    }
}

const DELAYS: [(&str, Span); 6] = [
    ("URGENT_WAIT", URGENT_WAIT),
    ("SPACING_MAX", SPACING_MAX),
    ("PLAN_PAUSE_MAX", PLAN_PAUSE_MAX),
    ("MERGE_WAIT", MERGE_WAIT),
    ("FIGURES_WAIT", FIGURES_WAIT),
    ("STATUS_PERIOD", STATUS_PERIOD),
];

/// The rows of the page's table of delays: news, the delays' names, and the sum as written.
fn rows(page: &str) -> Vec<(&str, Vec<&str>, &str)> {
    let table = page.split("| news |").nth(1).unwrap();
    let rows = table
        .lines()
        .skip(2)
        .map_while(|row| row.strip_prefix("| "));
    let cells = rows.map(|row| row.trim_end_matches(" |").split(" | ").collect::<Vec<_>>());
    cells
        .map(|cells| {
            let names = cells[1].split('`').skip(1).step_by(2).collect();
            (cells[0], names, cells[2])
        })
        .collect()
}

#[test]
fn news_waits_for_two_delays_at_most_as_the_page_says() {
    let page = include_str!("../../../docs/reference/ledger.md");
    let rows = rows(page);
    let mut used = BTreeSet::new();
    for (news, names, sum) in &rows {
        assert!((1..=2).contains(&names.len()), "{news}: {names:?}");
        let of = |name: &&str| DELAYS.iter().find(|(known, _)| known == name).unwrap().1;
        let total: i64 = names.iter().map(|name| of(name).0).sum();
        assert_eq!(*sum, format!("{} s", Span(total).seconds()), "{news}");
        used.extend(names.iter().copied());
    }
    for (name, delay) in DELAYS {
        assert!(used.contains(name), "{name} delays nothing");
        let with_its_time = format!("`{name}` {} s", delay.seconds());
        assert!(page.contains(&with_its_time), "{with_its_time}");
    }
}

/// Constants of the files between news and its write that delay no news: waits after failures, and periods of looks
/// that nothing asks for.
const OTHER_WAITS: [&str; 7] = [
    "CONFLICT_WAIT",
    "ERROR_WAIT",
    "PARTS_PERIOD",
    "TOO_LARGE_WAIT",
    "TOTALS_WAIT",
    "WAIT_MIN",
    "WAKE_MAX",
];

#[test]
fn no_other_delay_is_between_news_and_its_write() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let on_the_way = [
        "context/spacing.rs",
        "reconcile/mod.rs",
        "reconcile/queue.rs",
        "reconcile/driver.rs",
        "reconcile/record.rs",
        "reconcile/record/write.rs",
        "reconcile/status.rs",
        "reconcile/next_reconcile.rs",
    ];
    let (mut found, mut deferrals) = (BTreeSet::new(), 0);
    for file in on_the_way {
        let code = fs::read_to_string(src.join(file)).unwrap();
        deferrals += code.matches("Err(Error::Deferred(until));").count();
        let constants = code.lines().filter_map(|line| line.split("const ").nth(1));
        let times = constants.filter_map(|constant| constant.split_once(": "));
        let times = times.filter(|(name, _)| !name.contains(' '));
        let times = times.filter(|(_, kind)| kind.starts_with("Span") || kind.starts_with("Dur"));
        found.extend(times.map(|(name, _)| name.to_owned()));
    }
    for (name, _) in DELAYS {
        assert!(found.remove(name), "{name}");
    }
    found.retain(|name| !OTHER_WAITS.contains(&&**name));
    assert!(found.is_empty(), "docs/reference/ledger.md lacks {found:?}");
    assert_eq!(deferrals, 1, "one function defers writes");
}
