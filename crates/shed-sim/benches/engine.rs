//! How many events of a real trace the engine takes per second of CPU time, policy included. Every
//! line says how often it ran and what came of it, so that two versions can be compared: with
//! another digest they did not do the same.
//!
//! `SHED_TRACES` names the folder of `google2011_hawk_a.csv.gz`; without it nothing is measured.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use cpu_time::ThreadTime;
use shed_sim::cli::RunOptions;
use shed_sim::engine::Engine;

const TRACE: &str = "google2011_hawk_a.csv.gz";

/// Name, runs, flags.
const CASES: [(&str, u32, &str); 3] = [
    ("hadoop-ns", 40, "--policy hadoop-ns"),
    ("shed-plus", 5, SHED_PLUS),
    ("shed-plus --fast", 7, FAST),
];

const SHED_PLUS: &str = "--policy shed-plus --deadline-factor 1.5 --attempt-model resample \
    --launch-overhead 5% --first-report 5% --report-every 5%";
const FAST: &str = "--policy shed-plus --deadline-factor 1.5 --attempt-model resample \
    --launch-overhead 5% --first-report 5% --report-every 5% --fast";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: RunOptions,
}

fn main() {
    let folder = std::env::var_os("SHED_TRACES").map(PathBuf::from);
    let Some(path) = folder.map(|f| f.join(TRACE)).filter(|path| path.exists()) else {
        println!("not measured: SHED_TRACES names no folder with {TRACE}");
        return;
    };
    let wanted = std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with("--"));
    for (name, runs, flags) in CASES {
        if wanted.as_ref().is_none_or(|wanted| wanted == name) {
            measure(
                name,
                runs,
                &format!("{flags} --slots 12000 --order fifo"),
                &path,
            );
        }
    }
}

fn measure(name: &str, runs: u32, flags: &str, path: &std::path::Path) {
    let trace = path.display().to_string();
    let words = ["run", "--trace", &trace]
        .into_iter()
        .chain(flags.split_whitespace());
    let options = Line::parse_from(words).options;
    let prepared = match options.prepare() {
        Ok(prepared) => prepared,
        Err(error) => panic!("{error}"),
    };
    let mut times = Vec::new();
    let mut figures = None;
    for _ in 0..runs {
        let begin = ThreadTime::now();
        let outcome = Engine::new(&prepared.settings, &prepared.workload).run();
        times.push(begin.elapsed());
        figures = outcome.ok().map(|outcome| outcome.figures(prepared.slots));
    }
    times.sort_unstable();
    let (Some(figures), Some(least)) = (figures, times.first()) else {
        panic!("{name} did not end");
    };
    let rate = |time: &Duration| figures.events as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{name:<17} {} events, {} runs: least {:.4} s, {:.3} million events/s; median {:.4} s, {:.3}; \
         {} of {} deadlines met, {} clones, digest {}",
        figures.events,
        runs,
        least.as_secs_f64(),
        rate(least),
        times[times.len() / 2].as_secs_f64(),
        rate(&times[times.len() / 2]),
        figures.jobs_met,
        figures.jobs,
        figures.clones,
        figures.digest,
    );
}
