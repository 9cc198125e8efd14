//! The command line: one variant per verb, each verb in a module of its own.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::connection::Connection;
use crate::page;
use crate::terminal;
use crate::verbs::clone_stops::Wish;
use crate::verbs::{
    adopt, check, clone_stops, completion, explain, nodes, release, report, status, suggest,
    timeline, top, version, whatif,
};

/// Ask shed about jobs with deadlines.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-shed",
    bin_name = "kubectl shed",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
pub struct Args {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::StatusArgs),
    Explain(explain::ExplainArgs),
    Timeline(timeline::TimelineArgs),
    Page(page::PageArgs),
    Top(top::TopArgs),
    Nodes(nodes::NodesArgs),
    Check(check::CheckArgs),
    Whatif(whatif::WhatifArgs),
    Suggest(suggest::SuggestArgs),
    Adopt(adopt::AdoptArgs),
    /// Start no new clones of a namespace's jobs, or of any job (writes an annotation of the Namespace)
    #[command(after_help = clone_stops::STOP_EXAMPLES)]
    StopClones(clone_stops::Scope),
    /// Allow new clones again (removes the annotation of the Namespace)
    #[command(after_help = clone_stops::RESUME_EXAMPLES)]
    ResumeClones(clone_stops::Scope),
    Release(release::ReleaseArgs),
    Report(report::ReportArgs),
    Version(version::VersionArgs),
    Completion(completion::CompletionArgs),
}

/// Runs the verb. Errors go to standard error; a reader that goes away ends the program quietly.
pub fn main(args: Args) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(args)));
    match done {
        Ok(code) => code,
        Err(error) if terminal::is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::warn(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let connection = args.connection;
    match args.command {
        Command::Status(args) => status::run(args, &connection).await,
        Command::Explain(args) => explain::run(args, &connection).await,
        Command::Timeline(args) => timeline::run(args, &connection).await,
        Command::Page(args) => page::run(args, &connection).await,
        Command::Top(args) => top::run(args, &connection).await,
        Command::Nodes(args) => nodes::run(args, &connection).await,
        Command::Check(args) => check::run(&args),
        Command::Whatif(args) => whatif::run(args, &connection).await,
        Command::Suggest(args) => suggest::run(args, &connection).await,
        Command::Adopt(args) => adopt::run(args, &connection).await,
        Command::StopClones(scope) => clone_stops::run(Wish::Stop, scope, &connection).await,
        Command::ResumeClones(scope) => clone_stops::run(Wish::Resume, scope, &connection).await,
        Command::Release(args) => release::run(args, &connection).await,
        Command::Report(args) => report::run(args, &connection).await,
        Command::Version(args) => version::run(args, &connection).await,
        Command::Completion(args) => completion::run(&args, Args::command()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_verb_has_examples_in_its_help() {
        let command = Args::command();
        command.clone().debug_assert();
        for verb in command.get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(
                help.contains(&format!("kubectl shed {}", verb.get_name())),
                "{} has no example",
                verb.get_name()
            );
        }
    }
}
