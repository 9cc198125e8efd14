//! The command line: one variant per verb, each verb in a module of its own.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::connection::Connection;
use crate::terminal::{self, Terminal};
use crate::verbs::{explain, nodes, status, timeline, top};

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
    Top(top::TopArgs),
    Nodes(nodes::NodesArgs),
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
    let (connection, terminal) = (args.connection, Terminal::of_stdout());
    match args.command {
        Command::Status(args) => status::run(args, &connection, &terminal).await,
        Command::Explain(args) => explain::run(args, &connection, &terminal).await,
        Command::Timeline(args) => timeline::run(args, &connection, &terminal).await,
        Command::Top(args) => top::run(args, &connection, &terminal).await,
        Command::Nodes(args) => nodes::run(args, &connection, &terminal).await,
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
