//! The runs whose digests are frozen.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Parser;
use shed_sim::cli::presets::expand_with;
use shed_sim::cli::{Prepared, RunOptions};
use shed_sim::engine::Engine;
use shed_sim::settings::Passes;
use shed_sim::trace::{self, Trace};

use crate::record::Record;
use crate::shared;

pub const PRESETS: [&str; 20] = [
    "A", "Ar", "aL", "aS", "an", "C", "G", "Gr", "Gn", "G1", "GJ", "Gm", "P", "Pm", "Y", "Ym", "F",
    "Fm", "T", "Tm",
];

pub const SEEDS: [u64; 3] = [1, 2, 3];

/// The part of a preset that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// A dozen jobs on few slots, with full passes.
    Small,
    /// The preset as it is.
    Whole,
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub scale: Scale,
    pub preset: &'static str,
    pub seed: u64,
    pub policy: &'static str,
}

/// As `shed-sim run` takes them.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Flags {
    #[command(flatten)]
    options: RunOptions,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = match self.scale {
            Scale::Small => "small",
            Scale::Whole => "whole",
        };
        write!(f, "{scale} {} {} {}", self.preset, self.seed, self.policy)
    }
}

impl Run {
    /// The text of the run; none without the trace of its preset.
    pub fn text(&self) -> Option<String> {
        let options = self.options();
        let mut prepared = prepare(&options)?;
        let mut record = Record::default();
        let outcome = match self.scale {
            Scale::Small => {
                prepared.settings.passes = Passes::Full;
                let engine = Engine::new(&prepared.settings, &prepared.workload);
                engine.with_attempts().watched(&mut record).run()
            }
            Scale::Whole => {
                let engine = Engine::new(&prepared.settings, &prepared.workload);
                engine.with_attempts().run()
            }
        };
        let outcome = outcome.unwrap_or_else(|error| panic!("{self}: {error}"));
        record.outcome(&outcome);
        Some(record.text)
    }

    fn options(&self) -> RunOptions {
        shed_sim::policies::install(shed_papers::registry());
        let seed = self.seed.to_string();
        let preset = ["shed-sim", "run", "--preset", self.preset, "--seed", &seed];
        let mut args: Vec<&str> = preset.to_vec();
        args.extend(["--policy", self.policy]);
        if self.scale == Scale::Small {
            args.extend(["--load", "1.1", "--slots", "24"]);
            match self.preset {
                "A" | "Ar" | "aL" | "aS" | "an" => args.extend(["--trace", "setup:A{jobs=12}"]),
                "C" => args.extend(["--trace", "setup:C{jobs=12}"]),
                _ => args.extend(["--window", "12", "--tasks", "3..30"]),
            }
        }
        let args = args.into_iter().map(OsString::from).collect();
        let args =
            expand_with(args, 1, Some(shared::folder().as_os_str())).expect("a known preset");
        Flags::parse_from(args.into_iter().skip(2)).options
    }
}

/// Each trace is read once.
static READ: Mutex<BTreeMap<PathBuf, Trace>> = Mutex::new(BTreeMap::new());

fn prepare(options: &RunOptions) -> Option<Prepared> {
    let path = &options.trace;
    let prepared = if path.to_string_lossy().starts_with("setup:") {
        options.prepare()
    } else if path.is_file() {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read.entry(path.clone());
        let trace = known.or_insert_with(|| trace::read(path).expect("a sound trace"));
        let trace = trace.clone();
        drop(read);
        options.prepare_with(trace)
    } else {
        return None;
    };
    Some(prepared.expect("a workload that fits"))
}
