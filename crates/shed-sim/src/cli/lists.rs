//! The flags of a run, where each takes a list: `--load 0.4,0.8 --seed 0..20`. Commas inside braces belong to the
//! value: `--policy hadoop-ns,shed-plus{xi=0.1,joint=off}`.

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, Parser};

use super::{CliError, RunOptions};

/// The most combinations; more are a typing error.
const CELLS_MAX: usize = 1_000_000;

/// Lists of values by flag, in the order of the flags.
#[derive(Debug, Clone)]
pub struct Lists {
    values: Vec<(String, Vec<String>)>,
    switches: Vec<String>,
    /// Flags with values that are not defaults.
    given: Vec<String>,
}

/// One combination.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true)]
pub struct Cell {
    /// The values of its flags.
    #[command(flatten)]
    pub options: RunOptions,
    /// Its flags, as typed by a user: the name of the cell.
    #[arg(skip)]
    pub name: String,
}

fn run_flags() -> Command {
    RunOptions::augment_args(Command::new("run"))
}

impl Args for Lists {
    fn augment_args(command: Command) -> Command {
        run_flags().get_arguments().fold(command, |command, arg| {
            let mut arg = arg.clone();
            if arg.get_action().takes_values() {
                arg = arg
                    .value_parser(ValueParser::string())
                    .action(ArgAction::Append);
            }
            command.arg(arg)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Lists {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut values, mut switches, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for arg in run_flags().get_arguments() {
            let id = arg.get_id().as_str();
            let Some(long) = arg.get_long() else {
                continue;
            };
            if !arg.get_action().takes_values() {
                if matches.get_flag(id) {
                    switches.push(format!("--{long}"));
                }
            } else if let Some(given) = matches.get_many::<String>(id) {
                let list = given.flat_map(|text| split(long, text)).collect();
                values.push((format!("--{long}"), list));
                if matches.value_source(id) != Some(ValueSource::DefaultValue) {
                    own.push(format!("--{long}"));
                }
            }
        }
        Ok(Self {
            values,
            switches,
            given: own,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Lists {
    /// Whether the user gave the flag.
    pub fn is_given(&self, flag: &str) -> bool {
        self.given.iter().any(|given| given == flag)
    }

    /// Flags with more than one value.
    pub fn several(&self) -> impl Iterator<Item = &str> {
        let several = self.values.iter().filter(|(_, list)| list.len() > 1);
        several.map(|(flag, _)| flag.as_str())
    }

    /// Every combination; the last flag changes fastest.
    pub fn cells(&self) -> Result<Vec<Cell>, CliError> {
        let count = self.values.iter().map(|(_, list)| list.len());
        let count = count.fold(1_usize, usize::saturating_mul);
        if count > CELLS_MAX {
            let message = format!("{count} combinations are more than {CELLS_MAX}");
            return Err(CliError::Usage(message));
        }
        (0..count).map(|number| self.cell(number)).collect()
    }

    fn cell(&self, mut number: usize) -> Result<Cell, CliError> {
        let mut flags = self.switches.clone();
        for (flag, list) in self.values.iter().rev() {
            // `number` is a number whose digits have the lengths of the lists as bases.
            flags.push(list[number % list.len()].clone());
            flags.push(flag.clone());
            number /= list.len();
        }
        flags[self.switches.len()..].reverse();
        let parsed = Cell::try_parse_from(&flags);
        let mut cell = parsed.map_err(|error| CliError::Usage(one_line(&error)))?;
        cell.name = flags.join(" ");
        Ok(cell)
    }
}

/// The flags of a cell's name except these, each with its value.
pub fn without(cell: &str, flags: &[&str]) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut words = cell.split(' ');
    while let Some(word) = words.next() {
        if flags.contains(&word) {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// clap's message without its usage hints.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The values of a list; `0..20` for seeds.
fn split(flag: &str, text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    let range = |part: &str| -> Option<Vec<String>> {
        let (low, high) = part.split_once("..").filter(|_| flag == "seed")?;
        let (low, high) = (low.parse::<u64>().ok()?, high.parse::<u64>().ok()?);
        (high > low && high - low <= CELLS_MAX as u64)
            .then(|| (low..high).map(|seed| seed.to_string()).collect())
    };
    parts
        .into_iter()
        .flat_map(|part| range(&part).unwrap_or_else(|| vec![part]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_braces_belong_to_the_value() {
        let parts = split("policy", "hadoop-ns,shed-plus{xi=0.1,theta=0.2},x");
        assert_eq!(parts, ["hadoop-ns", "shed-plus{xi=0.1,theta=0.2}", "x"]);
    }

    #[test]
    fn a_cell_is_named_by_the_flags_that_its_runs_share() {
        let cell = "--check --trace t.csv --policy a{x=1} --load 0.8 --slots 4 --seed 3";
        let shared = without(cell, &["--policy", "--seed", "--load"]);
        assert_eq!(shared, "--check --trace t.csv --slots 4");
    }

    #[test]
    fn a_range_of_seeds_leaves_its_end_out() {
        assert_eq!(split("seed", "7,1..4"), ["7", "1", "2", "3"]);
        assert_eq!(split("load", "1..4"), ["1..4"]);
    }
}
