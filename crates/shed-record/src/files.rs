//! The files of a recording: names, order, and how many there may be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "shed-recording-";
const SUFFIXES: [&str; 2] = [".jsonl.gz", ".jsonl"];

/// How many files a recording is kept in: when it is full, the oldest one goes, and no more than
/// that part of it is lost.
pub(crate) const FILES: u64 = 8;

/// A file of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The file with that number.
pub(crate) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{number:08}{}", SUFFIXES[0]))
}

/// The files of a recording, oldest first.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<Numbered>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(number) else {
            continue;
        };
        files.push(Numbered {
            number,
            path: entry.path(),
            bytes: entry.metadata()?.len(),
        });
    }
    files.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    Ok(files)
}

fn number(name: &str) -> Option<u64> {
    let rest = name.strip_prefix(PREFIX)?;
    let digits = SUFFIXES.iter().find_map(|end| rest.strip_suffix(end))?;
    digits.parse().ok()
}

/// Removes the oldest until another file of `bytes_max / FILES` fits.
pub(crate) fn free_space(folder: &Path, bytes_max: u64) -> io::Result<()> {
    let files = list(folder)?;
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let most = bytes_max - bytes_max / FILES;
    for file in files {
        if bytes <= most {
            break;
        }
        fs::remove_file(&file.path)?;
        bytes -= file.bytes;
    }
    Ok(())
}
