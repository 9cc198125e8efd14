//! Running the programs that the harness is made of (the cluster tool, helm, image builds).

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command as StdCommand, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use tokio::process::{Child, Command};

use crate::cluster::PROXY_VARIABLES;

/// The repository's root: of the checkout that cargo runs us from, which need not be the one that
/// compiled us if checkouts share a target folder.
pub fn repository() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.filter(|folder| folder.join("cluster/cluster").is_file());
    let package = package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    package.parent().unwrap_or(&package).to_path_buf()
}

/// The name of a value on the command line.
pub fn option_name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Where builds and inputs are kept between runs: the folder that the cluster tool uses too.
pub fn cache_folder() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: set one, builds are kept below it")?;
    Ok(base.join("shed"))
}

/// Runs a program from the repository's root and returns what it printed, without the last line
/// break. Its standard error goes to ours, so that long builds are visibly alive.
pub async fn run<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    finish(command, Stdio::inherit()).await
}

/// As [`run`], but what the program says is only shown if it fails.
pub async fn run_quietly<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: &[S],
) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    finish(command, Stdio::piped()).await
}

/// Starts a program that goes on until its handle is dropped. It talks to this machine without a proxy.
pub fn in_background(command: &mut Command, log: File) -> std::io::Result<Child> {
    for name in PROXY_VARIABLES {
        command.env_remove(name);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
}

async fn finish(mut command: Command, errors: Stdio) -> Result<String> {
    let shown = describe(command.as_std());
    let output = command
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        // A demo that is interrupted must not leave a helm or a build behind.
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("could not start `{shown}`"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{shown}` failed ({}): {}{}",
            output.status,
            printed.trim(),
            said.trim()
        );
    }
    Ok(printed.trim_end().to_owned())
}

/// The program and its arguments, for messages.
pub fn describe(command: &StdCommand) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
