//! Many nodes and tasks under trouble: `bench_large --help`. e2e/bench-large.sh starts what it needs.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::bench::run;
use shed_e2e::large::Options;

#[tokio::main]
async fn main() -> ExitCode {
    run(&Options::parse()).await
}
