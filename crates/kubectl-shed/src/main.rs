//! `kubectl shed`: questions about jobs with deadlines, answered in a terminal.
#![forbid(unsafe_code)]

mod access;
mod cli;
mod connection;
mod documents;
mod events;
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
mod single_job;
mod table;
mod terminal;
mod verbs;
mod watched;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::main(cli::Args::parse())
}
