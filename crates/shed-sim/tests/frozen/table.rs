//! The table of digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::runs::Run;

/// Tests run at the same time, and one may write.
static FILE: Mutex<()> = Mutex::new(());

/// FNV-1a of 64 bits, as 16 hexadecimal digits: short, and the same on every machine.
pub fn digest(bytes: &[u8]) -> String {
    let step = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{digest:016x}")
}

/// `write`, `lines` or nothing.
fn mode() -> String {
    std::env::var("SHED_FROZEN").unwrap_or_default()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen/digests.txt")
}

/// Digests by name. The name is all of a line but the last word.
fn read() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines
        .map(|(name, digest)| (name.to_owned(), digest.to_owned()))
        .collect()
}

fn write(made: &BTreeMap<String, String>) {
    let mut digests = read();
    digests.extend(made.clone());
    let lines = digests
        .iter()
        .map(|(name, digest)| format!("{name} {digest}\n"));
    std::fs::write(path(), lines.collect::<String>()).expect("the table is written");
}

/// Runs that lack their trace are left out, and named.
#[track_caller]
pub fn compare(runs: &[Run]) {
    let mode = mode();
    let (mut made, mut skipped) = (BTreeMap::new(), Vec::new());
    for run in runs {
        let Some(text) = run.text() else {
            skipped.push(run.to_string());
            continue;
        };
        if mode == "lines" {
            keep_lines(run, &text);
        }
        made.insert(run.to_string(), digest(text.as_bytes()));
    }
    if !skipped.is_empty() {
        let names = skipped.join(", ");
        eprintln!("left out without their traces (SHED_TRACES names the folder): {names}");
    }
    assert_frozen(&made);
}

/// The table must hold these digests, or gets them.
#[track_caller]
pub fn assert_frozen(made: &BTreeMap<String, String>) {
    assert!(!made.is_empty(), "something ran");
    let _alone = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    if mode() == "write" {
        return write(made);
    }
    let frozen = read();
    let differ = |(name, digest): &(&String, &String)| frozen.get(*name) != Some(digest);
    let differing: Vec<&String> = made.iter().filter(differ).map(|(name, _)| name).collect();
    assert!(
        differing.is_empty(),
        "{} of {} digests differ from tests/frozen/digests.txt: {differing:?}",
        differing.len(),
        made.len()
    );
}

fn keep_lines(run: &Run, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/frozen");
    std::fs::create_dir_all(&folder).expect("a folder for the text");
    let name = run.to_string().replace(' ', "-");
    std::fs::write(folder.join(format!("{name}.txt")), text).expect("the text is written");
}
