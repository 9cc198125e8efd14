//! `kubectl shed`: questions about jobs with deadlines, answered in a terminal.
#![forbid(unsafe_code)]

mod access;
mod alone;
mod cli;
mod connection;
mod documents;
#[cfg(test)]
mod fixtures;
mod jobs;
mod leader;
mod lease;
mod model;
mod output;
mod page;
mod pods;
mod record;
mod table;
mod terminal;
mod verbs;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::main(cli::Args::parse())
}
