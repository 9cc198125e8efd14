//! The operator at scale, on a real control plane with fake nodes: one large job, many objects, a
//! tenant that is slow. Counts are asserted, times are only reported.

mod bytes;
mod large;
mod many_objects;
mod meter;
mod outcome;
mod stage;
mod tenant;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use kube::Client;

use self::bytes::Load;
use self::outcome::Outcome;
use self::stage::Stage;
use crate::bench::operator::memory_limit;
use crate::bench::program;
use crate::bench::site::local_cluster;
use crate::command::option_name;
use crate::host_operator::HostOperator;

/// The measured scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// One job of --live live attempts: started, suspended, resumed, stopped at the deadline.
    Job,
    /// One job of --cloned attempts that report progress, with clones, under an apiserver that
    /// answers one percent of all calls with an error.
    Clones,
    /// --specs jobs of one MB each, half of them another controller's, under two operators in turn.
    Specs,
    /// --finished jobs that have finished: what an operator with nothing to do takes.
    Finished,
    /// --large pods of one MB each that no scheduler places.
    Pods,
    /// --large suspended Jobs of one MB each that shed is to run.
    SuspendedJobs,
    /// --large finished Jobs of one MB each that shed has run.
    FinishedJobs,
    /// --large live DeadlineJobs, each at the limits of specification and annotations.
    LiveJobs,
    /// --slow-jobs jobs of a namespace whose creates take 20 s, next to another namespace.
    Tenant,
}

/// Measures an operator at scale.
#[derive(Clone, Debug, Parser)]
#[command(name = "scale")]
pub struct Options {
    /// Scenarios to go through; all if none is named.
    #[arg(long, value_delimiter = ',')]
    pub scenario: Vec<Scenario>,
    /// The operator's program. Default: the one that was built with this program.
    #[arg(long, value_name = "PATH", env = "SHED_SCALE_OPERATOR")]
    pub operator: Option<PathBuf>,
    /// Live attempts of the large job, a tenth of its tasks.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub live: u32,
    /// Whether one percent of all answers to the operator of the large job are 429, 500 or 503.
    #[arg(long)]
    pub overloaded: bool,
    /// Live attempts of the job with clones. With many more the default policy sees no clone that pays: its
    /// gain is the chance that all tasks are in time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub cloned: u32,
    /// Jobs of one MB.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub specs: u32,
    /// Pods, Jobs or live DeadlineJobs that are as large as the apiserver or shed takes them.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub large: u32,
    /// Finished jobs.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub finished: u32,
    /// Jobs of the slow namespace.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub slow_jobs: u32,
    /// How long the operator with nothing to do is watched.
    #[arg(long, default_value_t = 60)]
    pub idle_seconds: u64,
    /// How long one phase may take.
    #[arg(long, default_value_t = 1800)]
    pub phase_seconds: u64,
    /// Where the operator's logs go.
    #[arg(long, default_value = "target/scale")]
    pub folder: PathBuf,
    /// Only say whether the options are right.
    #[arg(long)]
    pub check: bool,
}

impl Scenario {
    fn name(self) -> String {
        option_name(&self)
    }

    async fn run(self, options: &Options, client: Client, outcome: &mut Outcome) -> Result<()> {
        match self {
            Self::Job => large::one_job(options, client, outcome).await,
            Self::Clones => large::clones(options, client, outcome).await,
            Self::Specs => many_objects::specs(options, client, outcome).await,
            Self::Finished => many_objects::idle(options, client, outcome).await,
            Self::Pods => bytes::large(Load::Pods, options, client, outcome).await,
            Self::SuspendedJobs => {
                bytes::large(Load::SuspendedJobs, options, client, outcome).await
            }
            Self::FinishedJobs => bytes::large(Load::FinishedJobs, options, client, outcome).await,
            Self::LiveJobs => bytes::large(Load::LiveJobs, options, client, outcome).await,
            Self::Tenant => tenant::slow(options, client, outcome).await,
        }
    }
}

/// Goes through the scenarios; true if all held what must hold.
pub async fn scale(options: &Options) -> Result<bool> {
    if options.check {
        return Ok(true);
    }
    let cluster = local_cluster("scale").await?;
    let program = program(options.operator.as_deref())?;
    let program = program.display().to_string();
    let scenarios = match options.scenario.as_slice() {
        [] => Scenario::value_variants(),
        named => named,
    };
    let mut is_clean = true;
    for scenario in scenarios {
        let mut outcome = Outcome::default();
        let went = scenario.run(options, cluster.client(), &mut outcome).await;
        if let Err(error) = went {
            outcome.broken.push(format!("{error:#}"));
        }
        println!("{}", outcome.line(&scenario.name(), &program));
        println!("\n{}\n{}", scenario.name(), outcome.table());
        is_clean &= outcome.broken.is_empty();
    }
    Ok(is_clean)
}

/// Invariants of every operator: its memory stays below the chart's limit, and its writes are never too large.
fn judge(stage: &Stage<'_>, subject: &HostOperator, outcome: &mut Outcome) -> Result<()> {
    let peak = subject.taken()?.peak;
    outcome.at_most("peakRssKiB", peak);
    let most = memory_limit()?;
    outcome.demand(peak <= most, || {
        let (peak, most) = (peak / 1024, most / 1024);
        format!("the operator had {peak} MiB, and the chart lets it have {most}")
    });
    let refused = stage.meter.counts().too_large;
    let logged = subject.refusals_logged()?;
    outcome.at_most("tooLarge", refused);
    outcome.demand(refused == 0 && logged == 0, || {
        format!("{refused} writes were too large, {logged} lines of the log say so")
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_scenario_or_size_is_answered_with_the_valid_ones() {
        for (wrong, valid) in [
            (["--scenario", "jobs"], "finished"),
            (["--live", "0"], "1..=100000"),
        ] {
            let arguments = [&["scale"][..], &wrong].concat();
            let error = Options::try_parse_from(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let said = error.to_string();
            assert!(said.contains(wrong[1]) && said.contains(valid), "{said}");
        }
    }
}
