//! `kubectl shed`: questions about jobs with deadlines, answered in a terminal.
#![forbid(unsafe_code)]

mod access;
mod cli;
mod connection;
mod documents;
mod lease;
mod terminal;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::main(cli::Args::parse())
}
