//! How long shed takes to act: `bench_latency --help`. e2e/bench-latency.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::bench::run;
use shed_e2e::latency::Options;

#[tokio::main]
async fn main() -> ExitCode {
    run(&Options::parse()).await
}
