//! Runs of a preset under several policies, with flags that take lists.

use clap::Parser;
use shed_sim::cli::lists::{self, Cell, Lists};
use shed_sim::cli::{CliError, presets};

/// The policies of tables that compare all of them, except this project's own.
macro_rules! others {
    () => {
        "hadoop-ns,hadoop-s{interval=3},late,mantri,dolly,hopper,chronos-s-resume,laser,sca,ese,dollymp,shed,s-resume-event,shed-plus"
    };
}
pub(super) use others;

/// The flags of one preset.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Flags {
    #[command(flatten)]
    lists: Lists,
}

/// Every combination of a preset's flags. The names of the cells begin with the preset's letter, so that results of
/// both of its names are the same.
pub(super) fn of(preset: &str, policies: &str, flags: &str) -> Result<Vec<Cell>, CliError> {
    let preset = presets::letter(preset)?;
    let words = ["lab", "sweep", "--preset", preset, "--policy", policies];
    let words = words.into_iter().chain(flags.split_whitespace());
    let words = words.map(std::ffi::OsString::from).collect();
    let folder = std::env::var_os("SHED_TRACES");
    let expanded = presets::expand_with(words, 1, folder.as_deref())?;
    let flags = Flags::try_parse_from(expanded.into_iter().skip(2));
    let flags = flags.map_err(|error| CliError::Usage(error.to_string()))?;
    let mut cells = flags.lists.cells()?;
    for cell in &mut cells {
        cell.name = format!("--preset {preset} {}", cell.name);
    }
    Ok(cells)
}

/// Policies that preempt first attempts where their preset allows it.
const MAY_PREEMPT: [&str; 3] = [PREEMPTION, "edf-admission", "shed-prime"];

/// The one that is an order alone where it may not.
const PREEMPTION: &str = "preemption";

/// Runs of a preset without preemption, and where the preset allows preemption also the runs with it of the policies
/// that may preempt. Flags that choose the preemption themselves are kept.
pub(super) fn by_preemption(
    preset: &str,
    policies: &str,
    flags: &str,
) -> Result<Vec<Cell>, CliError> {
    if flags.contains("--preemption") {
        return of(preset, policies, flags);
    }
    let mut cells = of(preset, policies, &format!("{flags} --preemption never"))?;
    cells.retain(|cell| base(cell) != PREEMPTION);
    if presets::allows_preemption(preset)? {
        let mut others = of(preset, policies, flags)?;
        others.retain(|cell| MAY_PREEMPT.contains(&base(cell)));
        cells.append(&mut others);
    }
    Ok(cells)
}

/// The policy's name without its parameters.
fn base(cell: &Cell) -> &str {
    cell.options.policy.split('{').next().unwrap_or_default()
}

/// Whether a cell's runs may preempt.
pub(super) fn preempts(cell: &str) -> bool {
    value(cell, "--preemption") == "when-checkpointed"
}

/// The flags that runs of all policies and seeds share.
pub(super) fn shared(cell: &str) -> String {
    lists::without(cell, &["--policy", "--seed"])
}

/// The value of a cell's flag.
pub(super) fn value(cell: &str, flag: &str) -> String {
    let mut words = cell.split(' ').skip_while(|word| *word != flag);
    words.nth(1).unwrap_or("-").to_owned()
}
