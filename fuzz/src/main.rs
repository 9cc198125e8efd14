//! Fuzzing of each parser of foreign bytes by libFuzzer: `make fuzz` (docs/develop/fuzzing.md). `SHED_FUZZ_TARGET` names the
//! parser. An input fails if the parser panics, or if what it accepts is not read back as it was written.
#![no_main]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shed::adopt::annotations;
use shed::api::{DeadlineJob, Ledger};
use shed::durable_state;
use shed_agent::{Metric, parse_metric, parse_report, read_endpoint, read_metrics, read_reply};
use shed_record::{Item, Reader};

/// The parsers by name.
const TARGETS: [(&str, fn(&[u8])); 7] = [
    ("progress", progress),
    ("wire", wire),
    ("annotations", annotations),
    ("ledger", ledger),
    ("state", state),
    ("recording", recording),
    ("trace", trace),
];

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("SHED_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    let names = TARGETS.map(|(name, _)| name).join(", ");
    found
        .unwrap_or_else(|| panic!("SHED_FUZZ_TARGET is `{wanted}`: use one of {names}"))
        .1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));

/// A task's progress file, and a page of metrics.
fn progress(bytes: &[u8]) {
    if let Ok(Some(report)) = parse_report(bytes) {
        assert!((0.0..=1.0).contains(&report.progress()), "{report:?}");
    }
    for total in [None, Some("total")] {
        let metric = Metric {
            name: "done",
            total,
        };
        if let Ok(Some(report)) = parse_metric(bytes, metric) {
            assert!((0.0..=1.0).contains(&report.progress()), "{report:?}");
        }
    }
}

/// An answer to a poll, a poll with a commit grant, and the values that a task gets.
fn wire(bytes: &[u8]) {
    let _ = read_reply(bytes, "uid");
    let _ = shed_agent::wire::read_stop(bytes);
    let _ = shed_agent::fence::read_poll(bytes, "uid");
    let metric = Metric {
        name: "done",
        total: None,
    };
    let (header, body) = bytes.split_at(bytes.len().min(8));
    let _ = read_endpoint(Some(header), body, "uid");
    let _ = read_metrics(Some(header), body, "uid", metric);
}

/// The annotations of a Job: lines of `name=value`.
fn annotations(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let of_shed = |(name, value): (&str, &str)| (format!("shed.dev/{name}"), value.to_owned());
    let all: BTreeMap<String, String> = pairs.map(of_shed).collect();
    if let Err(bad) = annotations::read(Some(&all)) {
        assert!(
            bad.to_string().contains("shed.dev/"),
            "it names no annotation: {bad}"
        );
    }
}

/// A whole DeadlineJob with its ledger.
fn ledger(bytes: &[u8]) {
    if let Some(job) = reads_back::<DeadlineJob>(bytes) {
        let _ = Ledger::from_status(job.status.as_ref());
        let _ = shed::validate::validate(&job);
    }
}

/// What the operator keeps in a ConfigMap.
fn state(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok((state, others)) = durable_state::decode(text) {
        let (written, _) = durable_state::encode(state, others).expect("it can be written");
        let again = durable_state::decode(&written).expect("what was written can be read");
        let (state, others) = again;
        let (same, _) = durable_state::encode(state, others).expect("it can be written");
        assert_eq!(written, same);
    }
}

/// A recording of the planner.
fn recording(bytes: &[u8]) {
    let path = written("shed-recording-00000000.jsonl", bytes);
    let Ok(mut reader) = Reader::open(&path) else {
        return;
    };
    while let Ok(Some(item)) = reader.next_item() {
        if matches!(item, Item::Cut) {
            break;
        }
    }
}

/// A trace: the first byte decides which kind of file it is.
fn trace(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else {
        return;
    };
    let name = if kind % 2 == 0 {
        "trace.csv"
    } else {
        "trace.swf"
    };
    let path = written(name, text);
    if let Ok(trace) = shed_sim::trace::read(&path) {
        for job in &trace.jobs {
            assert!(job.durations().all(|duration| duration.0 >= 0));
        }
    }
}

/// Reads JSON, and checks that what was read is the same when it is written and read again.
fn reads_back<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(bytes).ok()?;
    // As values, because the order of fields says nothing.
    let written = serde_json::to_value(&read).expect("it can be written");
    let again: T = serde_json::from_value(written.clone()).expect("what was written can be read");
    let second = serde_json::to_value(&again).expect("it can be written");
    assert_eq!(written, second);
    Some(read)
}

/// A file with this content, in the folder `SHED_FUZZ_FOLDER`.
fn written(name: &str, content: &[u8]) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let named = std::env::var_os("SHED_FUZZ_FOLDER");
        named.map_or_else(std::env::temp_dir, PathBuf::from)
    });
    let path = FOLDER.join(name);
    fs::write(&path, content).expect("a file for the input");
    path
}
