//! Entry point: parse arguments, run, say what is wrong.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = shed_sim::cli::expand(std::env::args_os());
    match args.and_then(|args| shed_sim::cli::Args::parse_from(args).run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
