//! shed compared with the built-in Job controller: `bench_scale --help`. e2e/bench-scale.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::bench_scale::{Options, bench_scale};
use shed_e2e::signals::told_to_stop;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let ended = tokio::select! {
        ended = bench_scale(&options) => ended,
        // Ends the operator that it started. Finished runs are in the results.
        stopped = told_to_stop() => stopped.and_then(|()| {
            anyhow::bail!("stopped; finished runs are in {}, and the same command continues after them", options.results.display())
        }),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench_scale: {error:#}");
            ExitCode::FAILURE
        }
    }
}
