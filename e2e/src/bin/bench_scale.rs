//! shed compared with the built-in Job controller: `bench_scale --help`. e2e/bench-scale.sh brings up what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::bench::run;
use shed_e2e::bench_scale::Options;

#[tokio::main]
async fn main() -> ExitCode {
    run(&Options::parse()).await
}
