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

/// The flags that runs of all policies and seeds share.
pub(super) fn shared(cell: &str) -> String {
    lists::without(cell, &["--policy", "--seed"])
}

/// The value of a cell's flag.
pub(super) fn value(cell: &str, flag: &str) -> String {
    let mut words = cell.split(' ').skip_while(|word| *word != flag);
    words.nth(1).unwrap_or("-").to_owned()
}
