//! Many nodes and tasks under trouble: `bench_large --help`. e2e/bench-large.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::large::{Options, bench_large};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = bench_large(&options) => ended,
        // Ends the operators that it started.
        stopped = told_to_stop() => stopped.and_then(|()| anyhow::bail!("stopped")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench_large: {error:#}");
            ExitCode::FAILURE
        }
    }
}
