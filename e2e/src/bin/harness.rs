//! What needs a cluster with fake nodes: `harness --help`. For each command a script of e2e starts that cluster.

use std::process::ExitCode;

use clap::Parser;
use shed_e2e::bench::run;
use shed_e2e::campaign::campaign;
use shed_e2e::differential::differential;
use shed_e2e::monitoring::monitoring;
use shed_e2e::scale::scale;
use shed_e2e::signals::exit_code;
use shed_e2e::{bench_scale, campaign, differential, large, latency, monitoring, scale};

/// Tests and benches on a cluster with fake nodes.
#[derive(Parser)]
#[command(name = "harness")]
enum Harness {
    BenchLarge(large::Options),
    BenchLatency(latency::Options),
    BenchScale(bench_scale::Options),
    Campaign(campaign::Options),
    Differential(differential::Options),
    Monitoring(monitoring::Options),
    Scale(scale::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    // A signal ends every run, and with it the operators and other processes that it started.
    match Harness::parse() {
        Harness::BenchLarge(options) => run(&options).await,
        Harness::BenchLatency(options) => run(&options).await,
        Harness::BenchScale(options) => run(&options).await,
        Harness::Campaign(options) => exit_code("campaign", "stopped", campaign(&options)).await,
        Harness::Differential(options) => {
            exit_code("differential", "stopped", differential(&options)).await
        }
        Harness::Monitoring(options) => {
            exit_code("monitoring", "stopped", monitoring(&options)).await
        }
        Harness::Scale(options) => exit_code("scale", "stopped", scale(&options)).await,
    }
}
