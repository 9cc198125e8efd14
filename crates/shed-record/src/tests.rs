use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use proptest::prelude::*;
use shed_core::decide::decide;
use shed_core::estimate::fit::DistributionChoice;
use shed_core::fixtures::{at, attempt, job, world};
use shed_core::ids::{AttemptNumber, JobKey, NodeName, TaskIndex, Tenant};
use shed_core::memory::{JobMemory, Memory, NodeSlowness};
use shed_core::plan::{ExpectedEnd, Plan};
use shed_core::policy::{Order, Policy};
use shed_core::snapshot::Snapshot;
use shed_core::time::{Instant, Span};
use shed_papers::laser::file::networks_to_text;
use shed_papers::laser::fixtures::networks;

use crate::schema::{Decided, Ended, Header, Line, PolicyText, SCHEMA, recorded_plan};
use crate::{Basis, Fault, Item, Pass, Reader, Recorder, Writer, files};

mod incremental;

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shed-record-{name}-{}-{count}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = files::list(&self.0).expect("a folder");
        files.into_iter().map(|file| file.path).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed are left to the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A cluster in which two jobs come, report and go.
fn snapshot(step: u32, nodes: usize, noise: f64) -> Snapshot {
    let now = 10.0 + f64::from(step);
    let mut cluster = world(now, nodes, 8000);
    for (number, comes, goes) in [(0, 0, 20), (1, 3, 9), (2, 7, 30)] {
        if (comes..goes).contains(&step) {
            let begin = f64::from(comes);
            let share = (now - begin) / 40.0 / (1.0 + noise * f64::from(number));
            let mut built = job(&format!("job-{number}"))
                .tasks(6)
                .submitted(begin)
                .deadline_in(25.0)
                .resumes();
            for task in 0..(step - comes).min(4) {
                let slow = share / f64::from(task + 1);
                let running = attempt(0).launched(begin).on(task as usize % nodes);
                built = built.task(task, [running.progress(slow.min(1.0), now)]);
            }
            if step > comes + 4 {
                built = built.done([5]).ended_runs([3.7]);
            }
            cluster = cluster.job(built);
        }
    }
    let mut snapshot = cluster.build();
    let measured = Span::from_seconds(i64::from(step % 3) + 1);
    if !step.is_multiple_of(4) {
        snapshot
            .launch_overheads
            .insert(Tenant::from("default"), measured);
        snapshot.weights.insert(Tenant::from("default"), 2.5);
    }
    snapshot
}

fn pass(snapshot: Snapshot, memory: &Memory, policy: &Policy) -> (Pass, Memory) {
    let (plan, next) = decide(&snapshot, memory.clone(), policy);
    let names = snapshot.jobs.iter();
    let names = names.map(|job| (job.key.clone(), format!("team/{}", job.key)));
    let pass = Pass {
        names: names.collect(),
        snapshot,
        basis: Basis::Memory(Box::new(memory.clone())),
        restated: None,
        plan,
        decided: Decided::Policy,
    };
    (pass, next)
}

/// Writes this many passes and returns them.
fn record(folder: &Path, bytes_max: u64, count: u32) -> Vec<(Snapshot, Plan)> {
    let policy = Policy::default();
    let mut writer = Writer::new(folder, bytes_max, &policy, at(0.0));
    let (mut memory, mut written) = (Memory::default(), Vec::new());
    for step in 0..count {
        let (pass, next) = pass(snapshot(step % 40, 3, 0.1), &memory, &policy);
        written.push((pass.snapshot.clone(), recorded_plan(pass.plan.clone())));
        writer.pass(pass).expect("it can be written");
        memory = next;
    }
    writer.finish().expect("it can be written");
    written
}

/// The passes that were read, and whether a file was cut.
fn read(path: &Path) -> (Vec<(u64, Snapshot, Plan)>, bool) {
    let mut reader = Reader::open(path).expect("a recording");
    let (mut passes, mut is_cut) = (Vec::new(), false);
    while let Some(item) = reader.next_item().expect("a sound recording") {
        match item {
            Item::Pass { number, plan, .. } => {
                passes.push((number, reader.snapshot().clone(), *plan));
            }
            Item::Cut => is_cut = true,
            _ => {}
        }
    }
    (passes, is_cut)
}

#[track_caller]
fn refused(path: &Path, line: Option<u64>, field: Option<&str>, words: &str) {
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(error) => {
            assert_eq!(
                (error.line, error.field.as_deref()),
                (line, field),
                "{error}"
            );
            assert!(error.message.contains(words), "{error}");
            return;
        }
    };
    let error = loop {
        match reader.next_item() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing was refused"),
            Err(error) => break error,
        }
    };
    assert_eq!(
        (error.line, error.field.as_deref()),
        (line, field),
        "{error}"
    );
    assert!(error.message.contains(words), "{error}");
}

#[test]
fn every_policy_is_read_back_from_its_text() {
    let known = shed_papers::registry();
    for speculation in known.all() {
        for (order, distribution) in [
            (Order::default(), DistributionChoice::default()),
            (Order::Fifo, DistributionChoice::ALL[1]),
        ] {
            let policy = Policy {
                order,
                distribution,
                speculation: speculation.clone(),
                capacity_share: 0.7,
                surge_max: 3,
                work_max: 77,
            };
            assert_eq!(PolicyText::of(&policy).policy(&known), Ok(policy));
        }
    }
}

#[test]
fn files_are_in_the_recording() {
    let known = shed_papers::registry();
    let laser = known.parse("laser", Order::default()).unwrap();
    let trained = networks_to_text(&networks(5)).unwrap();
    let files = [("laser.json".to_owned(), trained.clone())].into();
    let with = laser.clone().with_files(&files).unwrap();
    let text = PolicyText::of(&with);
    assert_eq!(text.policy(&known), Ok(with.clone()));
    assert_ne!(with, laser);
    let json = serde_json::to_string(&text).unwrap();
    assert_eq!(serde_json::from_str::<PolicyText>(&json).unwrap(), text);

    let folder = Folder::new("files");
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("shed-recording-00000000.jsonl");
    let policy_of = |policy: PolicyText| -> Result<_, crate::InputError> {
        let header = Line::Header(Header {
            schema: SCHEMA,
            shed: "0".into(),
            policy,
            run: Instant(0),
            first_pass: 0,
            lost: 0,
            memory: Memory::default(),
        });
        fs::write(&file, serde_json::to_string(&header).unwrap() + "\n").unwrap();
        let reader = Reader::open(&folder.0).unwrap();
        match reader.knowing(known.clone()).next_item()? {
            Some(Item::File(_, policy)) => Ok(*policy),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(policy_of(text.clone()), Ok(with));
    let mut wrong = text;
    let broken = trained.replacen("elapsed_most", "elapsed", 1);
    wrong.files = [("laser.json".to_owned(), broken)].into();
    let error = policy_of(wrong).unwrap_err();
    let field = error.field.as_deref();
    assert_eq!(field, Some("header.policy.policy"), "{error}");
    assert!(error.message.contains("`elapsed_most` missing"), "{error}");
}

#[test]
fn what_was_written_is_read_back_file_by_file() {
    let folder = Folder::new("back");
    let mut written = record(&folder.0, 1 << 30, 35);
    written.extend(record(&folder.0, 1 << 30, 20));
    assert_eq!(folder.files().len(), 2, "each run begins a file");
    let (passes, is_cut) = read(&folder.0);
    assert!(!is_cut);
    let numbers: Vec<u64> = passes.iter().map(|pass| pass.0).collect();
    assert_eq!(numbers, (0..35).chain(0..20).collect::<Vec<u64>>());
    let read: Vec<(Snapshot, Plan)> = passes.into_iter().map(|(_, s, p)| (s, p)).collect();
    assert_eq!(read, written);
}

#[test]
fn the_oldest_files_go_when_there_is_no_more_capacity() {
    let (folder, bytes_max) = (Folder::new("rotated"), 32 << 10);
    let written = record(&folder.0, bytes_max, 400);
    let files = files::list(&folder.0).unwrap();
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    assert!(files.len() > 4 && files[0].number > 0, "{files:?}");
    // A file is ended by the pass that fills it, so each may be larger by one.
    assert!(bytes < bytes_max + 8 * 2048, "{bytes}");
    let (passes, _) = read(&folder.0);
    let kept: Vec<(Snapshot, Plan)> = passes.into_iter().map(|(_, s, p)| (s, p)).collect();
    assert!(kept.len() > 30, "{}", kept.len());
    assert_eq!(kept, written[written.len() - kept.len()..]);
}

#[test]
fn each_file_says_what_the_planner_remembered() {
    let folder = Folder::new("memory");
    record(&folder.0, 32 << 10, 200);
    let mut reader = Reader::open(&folder.0).unwrap();
    let (mut memory, mut files, mut next_pass) = (None, 0, 0);
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::File(header, policy) => {
                assert_eq!(*policy, Policy::default());
                if let Some(memory) = &memory {
                    assert_eq!((memory, next_pass), (&header.memory, header.first_pass));
                }
                memory = Some(header.memory);
                files += 1;
            }
            Item::Pass { number, plan, .. } => {
                let before = memory.take().unwrap();
                let (again, after) = decide(reader.snapshot(), before, &Policy::default());
                assert_eq!(recorded_plan(again), *plan);
                memory = Some(after);
                next_pass = number + 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(files > 2);
}

#[test]
fn a_file_may_end_anywhere_and_what_is_complete_is_read() {
    let folder = Folder::new("cut");
    let written = record(&folder.0, 1 << 30, 30);
    let file = folder.files().remove(0);
    let whole = fs::read(&file).unwrap();
    let mut counts = Vec::new();
    for length in [
        0,
        1,
        5,
        30,
        whole.len() / 3,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        fs::write(&file, &whole[..length]).unwrap();
        let (passes, is_cut) = read(&folder.0);
        assert_eq!(is_cut, length > 0, "{length}");
        for ((_, snapshot, plan), expected) in passes.iter().zip(&written) {
            assert_eq!((snapshot, plan), (&expected.0, &expected.1));
        }
        counts.push(passes.len());
    }
    assert!(counts.is_sorted() && counts[4] > 0, "{counts:?}");
    assert_eq!(
        counts.last(),
        Some(&30),
        "only the end of the compression is missing"
    );
}

#[test]
fn expected_ends_are_left_out_and_read_from_older_files() {
    let folder = Folder::new("ends");
    let policy = Policy::default();
    let (mut pass, _) = pass(snapshot(9, 3, 0.1), &Memory::default(), &policy);
    let end = ExpectedEnd {
        task: TaskIndex(0),
        attempt: AttemptNumber(0),
        at: at(7.0),
    };
    pass.plan.report.jobs[0].ends = vec![end];
    let mut writer = Writer::new(&folder.0, 1 << 30, &policy, at(0.0));
    writer.pass(pass).unwrap();
    writer.finish().unwrap();
    let file = folder.files().remove(0);
    let bytes = fs::read(&file).unwrap();
    let lines = flate2::read::GzDecoder::new(bytes.as_slice());
    let lines = serde_json::Deserializer::from_reader(lines).into_iter::<serde_json::Value>();
    let mut lines: Vec<_> = lines.map(Result::unwrap).collect();
    let report = &mut lines[1]["pass"]["plan"]["report"]["jobs"][0];
    assert!(report["key"].is_string() && report.get("ends").is_none());
    report["ends"] = serde_json::to_value([end]).unwrap();
    let older: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&file, older.concat()).unwrap();
    assert_eq!(read(&folder.0).0[0].2.report.jobs[0].ends, [end]);
}

#[test]
fn what_is_no_recording_is_refused_by_file_line_and_field() {
    let folder = Folder::new("refused");
    record(&folder.0, 1 << 30, 3);
    let mut text = String::new();
    let bytes = fs::read(folder.files().remove(0)).unwrap();
    let mut decoder = flate2::read::GzDecoder::new(bytes.as_slice());
    std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let plain = Folder::new("plain");
    fs::create_dir_all(&plain.0).unwrap();
    let file = plain.0.join("shed-recording-00000000.jsonl");
    let check = |lines: &[&str], line, field: &str, words| {
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        refused(&plain.0, Some(line), Some(field), words);
    };
    let newer = lines[0].replace("\"schema\":1", "\"schema\":2");
    check(&[&newer], 1, "header.schema", "this version reads schema 1");
    let unlike = r#"{"header":{"schema":7,"shed":"9.9.9","unlike":[]}}"#;
    check(
        &[unlike],
        1,
        "header.schema",
        "7, written by shed 9.9.9, is newer",
    );
    check(&lines[1..], 1, "header", "begins with");
    check(&[lines[0], lines[0]], 2, "header", "only a first line");
    check(&[lines[0], "{\"pass\":{}}"], 2, "pass", "missing field");
    let unknown = lines[0].replace("shed-prime{", "shed-prime{nonsense=1,");
    check(&[&unknown], 1, "header.policy.policy", "nonsense");
    let wrong = lines[1].replace("\"now\":", "\"now\":\"noon\",\"was\":");
    check(&[lines[0], &wrong], 2, "pass.now", "noon");
    let beyond = lines[2].replace("\"decided\":", "\"changed\":[0,9],\"decided\":");
    check(
        &[lines[0], lines[1], &beyond],
        3,
        "pass.changed",
        "position 9, and there are 1 jobs",
    );
    let headless = lines[2];
    check(
        &[lines[0], headless],
        2,
        "pass.node_count",
        "nodes are known",
    );
    let empty = Folder::new("empty");
    refused(&empty.0, None, None, "");
    fs::create_dir_all(&empty.0).unwrap();
    refused(&empty.0, None, None, "holds no recording");
}

#[test]
fn damaged_compression_is_refused() {
    let folder = Folder::new("damaged");
    record(&folder.0, 1 << 30, 30);
    let file = folder.files().remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 20] {
        *byte ^= 0x5a;
    }
    fs::write(&file, bytes).unwrap();
    let mut reader = Reader::open(&folder.0).unwrap();
    let fault = loop {
        match reader.next_item() {
            Ok(Some(Item::Cut)) => break None,
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(fault.is_some_and(|fault| fault.line.is_some()));
}

#[test]
fn ends_of_attempts_say_what_their_facts_said() {
    let folder = Folder::new("ended");
    let policy = Policy::default();
    let mut writer = Writer::new(&folder.0, 1 << 30, &policy, at(0.0));
    let facts = job("a")
        .tasks(2)
        .task(1, [attempt(0).progress(0.5, 9.0).succeeded(12.5)])
        .build();
    let ended = Ended::of(&facts, TaskIndex(1), shed_core::ids::AttemptNumber(0), None).unwrap();
    assert_eq!(
        (ended.started, ended.finished),
        (Some(at(1.0)), Some(at(12.5)))
    );
    assert_eq!(ended.reported, Some((0.5, at(9.0))));
    writer.ended(ended.clone()).unwrap();
    let (first, _) = pass(snapshot(1, 3, 0.0), &Memory::default(), &policy);
    writer.pass(first).unwrap();
    writer.ended(ended.clone()).unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&folder.0).unwrap();
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        if let Item::Ended(ended) = item {
            found.push(*ended);
        }
    }
    assert_eq!(
        found,
        [ended],
        "before the first pass it belongs to nothing"
    );
}

#[test]
fn a_recorder_that_cannot_write_says_so_and_makes_nobody_wait() {
    let folder = Folder::new("blocked");
    fs::write(&folder.0, "no folder").unwrap();
    let faults = Arc::new(Mutex::new((0u32, Vec::new())));
    let reported = Arc::clone(&faults);
    let policy = Policy::default();
    let recorder = Recorder::start(&folder.0, 1 << 20, &policy, at(0.0), move |fault| {
        let mut reported = reported.lock();
        match fault {
            Fault::Lost => reported.0 += 1,
            Fault::Write(error) => reported.1.push(error.to_string()),
        }
    });
    let recorder = recorder.unwrap();
    for step in 0..100 {
        let (pass, _) = pass(snapshot(step % 20, 2, 0.0), &Memory::default(), &policy);
        recorder.pass(pass);
    }
    recorder.finish();
    let faults = faults.lock();
    assert_eq!(faults.0, 100);
    assert_eq!(faults.1.len(), 1, "a pause follows a fault: {:?}", faults.1);
    fs::remove_file(&folder.0).unwrap();
}

/// Floats of all kinds, JSON's own and others.
fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        0.0..1.0f64,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-0.0),
        Just(5e-324),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_facts_are_read_back_bit_by_bit(
        steps in prop::collection::vec((0..40u32, 1..5usize, 0.0..3.0f64, float()), 1..20),
        losses in prop::collection::vec(0..3u64, 20),
        news in prop::collection::vec(any::<[bool; 3]>(), 20),
        ln_ratio in float(),
    ) {
        let folder = Folder::new("any");
        let policy = Policy::default();
        let mut writer = Writer::new(&folder.0, 48 << 10, &policy, at(0.0));
        let mut memory = Memory::default();
        memory.set(JobKey::from("gone"), JobMemory { last_optimized: Some(at(1.0)) });
        let slowness = NodeSlowness { ln_ratio, weight: 2.5, seen: at(3.0) };
        let by_tenant = BTreeMap::from([(Tenant::from("default"), slowness)]);
        memory.set_slow_nodes(BTreeMap::from([(NodeName::from("node-0"), by_tenant)]));
        let mut expected = Vec::new();
        for (((step, nodes, noise, odd), lost), news) in steps.into_iter().zip(losses).zip(news) {
            let mut facts = snapshot(step, nodes, noise);
            for task in facts.jobs.iter_mut().flat_map(|job| &mut job.tasks) {
                for progress in task.attempts.iter_mut().filter_map(|a| a.progress.as_mut()) {
                    progress.first = odd;
                }
            }
            let (mut pass, _) = pass(facts, &memory, &policy);
            writer.lose(lost);
            let mut changed = None;
            if !writer.needs_full_pass() {
                let marks = &news[..pass.snapshot.jobs.len()];
                let positions = (0..marks.len()).filter(|at| marks[*at]).collect();
                pass.basis = Basis::PassBefore(positions);
                changed = Some(marks.to_vec());
            }
            let plan = recorded_plan(pass.plan.clone());
            expected.push(text(&(&pass.snapshot, &plan, &memory, &changed)));
            prop_assert!(writer.pass(pass).unwrap());
        }
        writer.finish().unwrap();
        let mut reader = Reader::open(&folder.0).unwrap();
        let (mut found, mut stated) = (Vec::new(), Memory::default());
        while let Some(item) = reader.next_item().unwrap() {
            match item {
                Item::File(header, _) => stated = header.memory,
                Item::Gap(gap) => stated = gap.memory,
                Item::Pass { plan, changed, .. } => {
                    found.push(text(&(reader.snapshot(), &*plan, &stated, &changed)));
                }
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!(found, expected);
    }
}

/// As written, so that NaN equals NaN.
fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn plain_and_compressed_files_read_alike() {
    let folder = Folder::new("alike");
    record(&folder.0, 1 << 30, 10);
    let file = folder.files().remove(0);
    let compressed = read(&file).0;
    let bytes = fs::read(&file).unwrap();
    let mut plain = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes.as_slice());
    std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
    fs::write(&file, &plain).unwrap();
    assert_eq!(read(&file).0, compressed);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut encoder, &plain).unwrap();
    fs::write(&file, encoder.finish().unwrap()).unwrap();
    assert_eq!(read(&file).0, compressed);
}
