//! `laser train`: the networks that the policy `laser` decides by, and \[L\]'s Table I.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use crate::laser::losses::{Losses, PUBLISHED, compare, ticks};
use crate::laser::samples::{Collector, Extra, Sample, Samples};
use crate::laser::training::Plan;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use shed_papers::Laser;
use shed_papers::laser::Networks;
use shed_record::{Item, Reader};

use crate::LabError;
use crate::learn;
use shed_sim::cli::files::write_text;
use shed_sim::cli::{CliError, RunOptions, output, values};
use shed_sim::parallel::{cores, in_order};
use shed_sim::trace::recording;

pub(super) const EXAMPLES: &str = "\
A trace is run on as many seeds as it takes, once without clones for the tasks' times and once with
a number of clones drawn for each job; a recording is learned from as it is, and needs no slots.

Examples:
  The paper's experiment, 2000 jobs of ten tasks:
    shed-lab laser train --trace setup:L-1 --slots 640 --launch-overhead 3 --resume offset --out laser.json
  Half of a real trace, for a policy that is tried on the other half:
    shed-lab laser train --preset google --load 0.8 --deadline-factor 1.5 --half first --out laser.json
  What the operator has recorded:
    shed-lab laser train --recording recording/ --out laser.json";

/// LASER's networks.
#[derive(Debug, Subcommand)]
pub(super) enum LaserCommand {
    /// Train networks and compare them with the paper's.
    #[command(after_help = EXAMPLES, allow_negative_numbers = true)]
    Train(Box<TrainArgs>),
}

#[derive(Debug, Args)]
pub(super) struct TrainArgs {
    #[command(flatten)]
    options: RunOptions,
    /// Minimum number of jobs to run. A recording has a fixed number.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = values::count)]
    jobs: usize,
    /// Units of each hidden layer; the paper does not give the number.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = values::count)]
    units: usize,
    /// Passes over the data.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    epochs: u32,
    /// Trees of the random forest to compare with; 0: none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    trees: usize,
    /// The networks, for --policy-file here and in the operator.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Write the table of losses here too, in Markdown.
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,
}

pub(super) fn run(command: &LaserCommand) -> Result<(), LabError> {
    let LaserCommand::Train(args) = command;
    let samples = if recording::is_one(&args.options.trace) {
        of_recording(args)?
    } else {
        simulated(args)?
    };
    let plan = Plan {
        source: args.options.trace.display().to_string(),
        units: args.units,
        epochs: args.epochs,
        seed: args.options.seed,
    };
    let bar = bar(ticks(&plan, args.trees), "training");
    let compared = compare(&samples, &plan, args.trees, &mut || bar.inc(1));
    bar.finish_and_clear();
    let (networks, losses) = compared.map_err(|error| LabError::Train {
        file: args.options.trace.clone(),
        error,
    })?;
    let text =
        shed_papers::laser::file::networks_to_text(&networks).map_err(|error| CliError::Write {
            what: args.out.display().to_string(),
            error: error.into(),
        })?;
    write_text(&args.out, &text)?;
    say_cost(&networks, &samples);
    let table = table(&samples, args.trees, &losses);
    if let Some(path) = &args.losses {
        write_text(path, &table)?;
    }
    output::write_to_stdout(table.as_bytes())?;
    Ok(())
}

fn bar(length: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template(
        "{prefix:>10} {bar:30} {pos}/{len}  {elapsed} passed, {eta} to go",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

impl TrainArgs {
    /// The policy with the instants for training.
    fn laser(&self) -> Result<Laser, CliError> {
        match self.options.policy()?.speculation.as_rule::<Laser>() {
            Some(laser) => Ok(laser.clone()),
            _ if self.options.policy == "shed-prime" => Ok(Laser::default()),
            _ => {
                let message = format!(
                    "--policy {}: networks are trained for laser; give its parameters, as in \
                     laser{{tau_est=0.4}}, or leave --policy out",
                    self.options.policy
                );
                Err(CliError::Usage(message))
            }
        }
    }
}

/// Samples from a recording.
fn of_recording(args: &TrainArgs) -> Result<Samples, CliError> {
    let laser = args.laser()?;
    let mut collector = Collector::new(laser, Extra::Seen, args.options.seed);
    let mut reader = Reader::open(&args.options.trace)?.knowing(shed_papers::registry());
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Pass { .. } => collector.pass(reader.snapshot()),
            Item::Ended(ended) => collector.ended(*ended),
            Item::File(..) | Item::Gap(_) | Item::Cut => {}
        }
    }
    Ok(collector.finish())
}

/// Samples from simulated runs on one seed after another, until there are enough jobs.
fn simulated(args: &TrainArgs) -> Result<Samples, CliError> {
    let laser = args.laser()?;
    let options = &args.options;
    let trace = match options.trace.to_str() {
        Some(name) if name.starts_with("setup:") => None,
        _ => Some(options.read_trace()?),
    };
    let of_seed = |seed: u64| {
        let options = RunOptions {
            seed,
            ..options.clone()
        };
        learn::of_seed(&options, trace.as_ref(), &laser, args.options.seed)
    };
    let first = of_seed(options.seed)?;
    let runs = args.jobs.div_ceil(first.jobs.max(1)) as u64;
    let bar = bar(runs, "running");
    bar.inc(1);
    let numbers: Vec<u64> = (1..runs).collect();
    let others = in_order(&numbers, cores(), |&number| {
        let samples = of_seed(options.seed.wrapping_add(number));
        bar.inc(1);
        samples
    });
    bar.finish_and_clear();
    Ok(others?.into_iter().fold(first, |mut all, samples| {
        all.add(samples);
        all
    }))
}

/// How long this machine takes to predict.
fn say_cost(networks: &Networks, samples: &Samples) {
    let each = |samples: &[Sample], predict: &dyn Fn(&Sample) -> f64| {
        let begin = Instant::now();
        for sample in samples {
            black_box(predict(sample));
        }
        begin.elapsed().as_secs_f64() * 1e6 / samples.len().max(1) as f64
    };
    let task = each(&samples.task, &|sample| {
        networks.task.predict(&sample.features)
    });
    let job = each(&samples.job, &|sample| {
        networks.job.predict(&sample.features) + networks.machine.predict(&sample.features)
    });
    eprintln!("a prediction takes {task:.1} µs per running task, and {job:.1} µs per job and r");
}

/// Table I and Figure 5, published and ours.
fn table(samples: &Samples, trees: usize, losses: &[Losses; 3]) -> String {
    let mut text = format!(
        "{} jobs; {} of them and {} tasks ran at τ_est and came to their end. Trained on four fifths of \
         the jobs, tested on the rest.\n\n\
         | time | whose | mean, s | loss with 1 layer, s | 3 layers | 5 layers | of the mean, % | forest, s | \
         networks better by, % | always the median, s |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        samples.jobs,
        samples.job.len(),
        samples.task.len()
    );
    let cell = |mean: f64, deviation: f64| format!("{mean:.1} ({deviation:.1})");
    for (ours, published) in losses.iter().zip(PUBLISHED) {
        let shares = |losses: &[f64], time: f64| {
            let shares: Vec<String> = losses
                .iter()
                .map(|loss| format!("{:.1}", 100.0 * loss / time))
                .collect();
            shares.join(" / ")
        };
        let cells = published.mean.iter().zip(published.deviation);
        let cells: Vec<String> = cells.map(|(mean, dev)| cell(*mean, dev)).collect();
        text.push_str(&format!(
            "| {} | published | {:.0} | {} | {} | - | {:.0} | - |\n",
            ours.what,
            published.time,
            cells.join(" | "),
            shares(&published.mean, published.time),
            published.over_forest,
        ));
        let means: Vec<f64> = ours.layers.iter().map(|loss| loss.mean).collect();
        let cells = ours.layers.iter();
        let cells: Vec<String> = cells.map(|loss| cell(loss.mean, loss.deviation)).collect();
        let better = ours.over_forest();
        let forest = ours.forest.zip(better).map(|(forest, better)| {
            let loss = cell(forest.mean, forest.deviation);
            (loss, format!("{better:.0}"))
        });
        let (forest, better) = forest.unwrap_or(("-".into(), "-".into()));
        text.push_str(&format!(
            "| {} | ours | {:.0} | {} | {} | {forest} | {better} | {} |\n",
            ours.what,
            ours.time,
            cells.join(" | "),
            shares(&means, ours.time),
            cell(ours.median.mean, ours.median.deviation),
        ));
    }
    let forest = match trees {
        0 => "No forest was grown.".to_owned(),
        _ => format!("The forest has {trees} trees."),
    };
    text.push_str(&format!(
        "\nLosses are mean absolute errors on jobs that were not trained on, with their standard deviations. \"Better\" is the best of the \
         three against the forest. {forest}\n"
    ));
    text
}
