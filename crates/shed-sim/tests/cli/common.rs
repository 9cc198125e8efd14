//! A folder for a test's files, the program, a tiny trace. `crate::program` returns the program that has
//! a sub-command: shed-lab's tests share this file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A folder of its own, gone at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shed-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    pub fn file(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file for the test");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans up a folder that cannot be removed here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn called(args: &[&str]) -> Output {
    Command::new(crate::program(args))
        .args(args)
        .output()
        .expect("the binary starts")
}

pub fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

pub const TINY: &str = "\
job_id,arrival_s,task_id,duration_s,cpu,memory_mib,deps,deadline_s,weight
a,0,0,2,1,100,,10,1
a,0,1,3,1,100,,10,1
a,0,2,1.5,1,100,0;1,10,1
b,1,0,4,2,200,,,1
";

/// Bytes as gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// The output of a command, which must succeed.
pub fn succeeds(args: &[&str]) -> String {
    let output = called(args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {message}");
    String::from_utf8(output.stdout).expect("output in UTF-8")
}

/// The command must end with exit code 2, write nothing and report all of `what`.
pub fn run_fails(args: &[&str], file: &str, what: &[&str]) {
    let output = called(args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty(), "nothing half-written");
    for part in what.iter().chain(&[file]) {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}
