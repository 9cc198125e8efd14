//! The program as a user runs it: without a cluster, and against a mock of the apiserver.

mod apiserver;
mod cluster;
mod live_page;
#[path = "../mock/mod.rs"]
mod mock;
mod offline;
mod own_objects;
mod page;
mod writes;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run of the program printed.
#[derive(Debug)]
struct Ran {
    out: String,
    err: String,
    code: i32,
}

impl Ran {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            out: text(&output.stdout),
            err: text(&output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

/// Runs the program in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
    ran(folder, arguments, "")
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
    Ran::of(&child.wait_with_output().unwrap())
}

fn run(arguments: &[&str]) -> Ran {
    run_with(arguments, "")
}
