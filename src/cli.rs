//! The command line: `shed operator`, `shed agent`, `shed agent commit`, `shed crds`, `shed metrics`,
//! `shed uninstall-check`.

use std::num::NonZero;

use clap::{Parser, Subcommand};
use kube::CustomResourceExt;
use shed_core::policy;
use tokio::runtime::Runtime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::api::DeadlineJob;
use crate::args::OperatorArgs;
use crate::metrics::{self, Metrics};
use crate::uninstall_check::{self, UninstallCheckArgs};

/// Deadlines for Kubernetes batch jobs.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator (inside the cluster, or with the current kubeconfig).
    Operator(Box<OperatorArgs>),
    /// Run next to a task: write its resume point and serve its progress.
    Agent(AgentArgs),
    /// Print the CustomResourceDefinition.
    Crds,
    /// Print the reference of the operator's metrics, in Markdown.
    Metrics,
    /// Fail, with their names, while jobs or pods in the cluster need the operator. The chart runs this before it is
    /// uninstalled.
    UninstallCheck(UninstallCheckArgs),
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
struct AgentArgs {
    /// Write the resume file and exit.
    #[arg(long)]
    init_only: bool,
    #[command(subcommand)]
    command: Option<AgentCommand>,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Run within a task of a job with `idempotency: Fenced`: wait for the commit grant of this attempt,
    /// then execute the command that publishes. SHED_FENCE_TOKEN has its fencing token.
    Commit {
        /// The command that publishes.
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<std::ffi::OsString>,
    },
}

impl Args {
    /// Carries out the sub-command.
    pub fn run(self) -> anyhow::Result<()> {
        self.run_with(&crate::operator::policies())
    }

    /// The same for an operator that has other policies.
    pub fn run_with(self, policies: &policy::Registry) -> anyhow::Result<()> {
        match self.command {
            Command::Operator(args) => run_operator(*args, policies),
            Command::Agent(args) => {
                start_logging(false, vec![]);
                match args.command {
                    Some(AgentCommand::Commit { command }) => {
                        shed_agent::commit::commit(&command).map(|never| match never {})
                    }
                    None => shed_agent::run_from_env(args.init_only),
                }
            }
            Command::Metrics => {
                print!("{}", metrics::reference(Metrics::new()?.listed()));
                Ok(())
            }
            Command::UninstallCheck(args) => {
                start_logging(false, vec![]);
                runtime(1)?.block_on(uninstall_check::run(args))
            }
            Command::Crds => {
                let whole_lines = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
                let crd = DeadlineJob::crd();
                print!(
                    "{}",
                    serde_saphyr::to_string_with_options(&crd, whole_lines)?
                );
                Ok(())
            }
        }
    }
}

fn run_operator(args: OperatorArgs, policies: &policy::Registry) -> anyhow::Result<()> {
    let lead = runtime(1)?;
    #[cfg(feature = "otel")]
    let export = crate::span_export::Export::from_env(lead.handle())?;
    #[cfg(feature = "otel")]
    let more: Vec<LogLayer> = export.iter().map(|export| export.layer()).collect();
    #[cfg(not(feature = "otel"))]
    let more = vec![];
    start_logging(args.log_json, more);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let work = runtime(cores)?;
    let operator = crate::operator::run(args, work.handle().clone(), policies);
    let ended = lead.block_on(operator);
    // A poll that does not end must not keep the process from ending.
    work.shutdown_background();
    #[cfg(feature = "otel")]
    if let Some(export) = export {
        export.finish();
    }
    ended
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).enable_all().build()
}

/// Log filter unless `RUST_LOG` is set. kube's client logs the whole answer that it cannot decode,
/// and such an answer may contain checkpoints.
pub const LOGGED: &str = "info,kube_runtime=warn,kube_client::client=error";

/// A layer of the process's subscriber.
pub type LogLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Logs go to standard error; RUST_LOG filters them. The other layers filter by themselves.
fn start_logging(json: bool, mut layers: Vec<LogLayer>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED));
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    layers.push(match json {
        true => logs.json().with_filter(filter).boxed(),
        false => logs.with_filter(filter).boxed(),
    });
    tracing_subscriber::registry().with(layers).init();
}
