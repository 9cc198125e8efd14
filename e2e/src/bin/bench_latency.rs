//! How long shed takes to act: `bench_latency --help`. e2e/bench-latency.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::latency::{Options, bench_latency};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = bench_latency(&options) => ended,
        // Ends the operator that it started. Finished loads are in the results.
        stopped = told_to_stop() => stopped.and_then(|()| {
            anyhow::bail!("stopped; finished loads are in {}, and the same command continues after them", options.results.display())
        }),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench_latency: {error:#}");
            ExitCode::FAILURE
        }
    }
}
