//! The program as a user runs it: without a cluster, and against a mock of the apiserver.

mod apiserver;
mod cluster;
mod offline;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the program printed.
#[derive(Debug)]
struct Ran {
    out: String,
    err: String,
    code: i32,
}

/// Runs the program with this standard input.
fn run_with(arguments: &[&str], input: &str) -> Ran {
    ran(Path::new("."), arguments, input)
}

fn ran(folder: &Path, arguments: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-shed"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input may end before all is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

fn run(arguments: &[&str]) -> Ran {
    run_with(arguments, "")
}
