//! Events of a real trace that the engine takes per second of CPU time, policy included. Every line has the number of
//! runs and a digest, so that two versions can be compared: different digests mean different actions.
//!
//! `SHED_TRACES` names the folder of `google2011_hawk_a.csv.gz`; without it nothing is measured.

use std::path::PathBuf;

use clap::Parser;
use shed_sim::cli::RunOptions;
use shed_sim::engine::Engine;

const TRACE: &str = "google2011_hawk_a.csv.gz";

/// Name, runs, flags.
const CASES: [(&str, usize, &str); 4] = [
    ("hadoop-ns", 40, ""),
    ("shed-plus{order=lst}", 2, OBSERVED),
    ("hadoop-ns{order=lst}", 20, OBSERVED),
    ("shed-prime{order=lst}", 1, OBSERVED),
];

const OBSERVED: &str = "--deadline-factor 1.5 --attempt-model resample \
    --launch-overhead 5% --first-report 5% --report-every 5%";

#[path = "../../shed-papers/benches/measure/mod.rs"]
mod measure;

use measure::{load, ms, time};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: RunOptions,
}

fn main() {
    shed_sim::policies::install(shed_papers::registry());
    let folder = std::env::var_os("SHED_TRACES").map(PathBuf::from);
    let Some(path) = folder.map(|f| f.join(TRACE)).filter(|path| path.exists()) else {
        println!("not measured: SHED_TRACES names no folder with {TRACE}");
        return;
    };
    let wanted = std::env::args().nth(1);
    let wanted = wanted.filter(|name| !name.starts_with("--"));
    for (name, runs, flags) in CASES {
        if wanted.as_ref().is_none_or(|wanted| wanted == name) {
            let trace = path.display();
            let flags =
                format!("run --policy {name} {flags} --slots 12000 --order fifo --trace {trace}");
            report(name, runs, &flags);
        }
    }
}

fn report(name: &str, runs: usize, flags: &str) {
    let options = Line::parse_from(flags.split_whitespace()).options;
    let prepared = options.prepare().unwrap_or_else(|error| panic!("{error}"));
    let run = || Engine::new(&prepared.settings, &prepared.workload).run();
    let outcome = run().unwrap_or_else(|error| panic!("{error}"));
    let figures = outcome.figures(prepared.slots);
    let (least, median) = time(runs, run);
    let rate = |time| figures.events as f64 / ms(time) / 1e3;
    println!(
        "{name:<17} {} events, {runs} runs: least {:.1} ms, {:.3} million events/s; median {:.1} ms, \
         {:.3}; {} of {} deadlines met, {} clones, digest {}; {}",
        figures.events,
        ms(least),
        rate(least),
        ms(median),
        rate(median),
        figures.jobs_met,
        figures.jobs,
        figures.clones,
        figures.digest,
        load(),
    );
}
