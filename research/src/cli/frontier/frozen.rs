//! A `shed-sim` program of another version, which makes the runs of a frozen policy.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::runs::OWN;
use shed_sim::cli::CliError;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::output::Row;
use shed_sim::cli::sweep::CellRow;

/// How a user gets such a program.
const FIX: &str = "research/frozen.sh builds it and prints its path";

/// The program.
#[derive(Debug)]
pub(super) struct Frozen {
    program: PathBuf,
}

impl Frozen {
    /// The program at that path, which must be a `shed-sim`.
    pub(super) fn new(program: &Path) -> Result<Self, CliError> {
        let frozen = Self {
            program: program.to_path_buf(),
        };
        let version = frozen.output(&["--version".to_owned()])?;
        if version.starts_with("shed-sim ") {
            return Ok(frozen);
        }
        let said = version.lines().next().unwrap_or_default();
        Err(frozen.fault(&format!("is not a shed-sim: its --version prints `{said}`")))
    }

    /// Makes a run.
    pub(super) fn run(&self, cell: &Cell) -> Result<CellRow, CliError> {
        let output = self.output(&arguments(&cell.name))?;
        let row = row_of(&output, cell.options.seed);
        Ok(CellRow {
            cpu_s: None,
            cell: cell.name.clone(),
            row: row.map_err(|what| self.fault(&format!("{what}, for `{}`", cell.name)))?,
        })
    }

    fn output(&self, arguments: &[String]) -> Result<String, CliError> {
        let output = Command::new(&self.program).args(arguments).output();
        let output = output.map_err(|error| self.fault(&format!("can't be started: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("nothing on standard error");
            let arguments = arguments.join(" ");
            return Err(self.fault(&format!("failed: {said}, for `{arguments}`")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn fault(&self, what: &str) -> CliError {
        let program = self.program.display();
        CliError::Usage(format!("--frozen: {program} {what}; {FIX}"))
    }
}

/// The flags of a cell as arguments of `run`, with the policy of this name in place of the frozen one. The program
/// gets the preset's flags one by one, so that both programs run the same workload.
fn arguments(cell: &str) -> Vec<String> {
    let mut flags: Vec<(&str, Vec<&str>)> = Vec::new();
    for word in cell.split(' ') {
        match flags.last_mut() {
            Some((_, values)) if !word.starts_with("--") => values.push(word),
            _ => flags.push((word, Vec::new())),
        }
    }
    let mut arguments = vec!["run".to_owned()];
    for (flag, values) in flags.iter().filter(|(flag, _)| *flag != "--preset") {
        arguments.push((*flag).to_owned());
        match *flag {
            "--policy" => arguments.push(OWN.to_owned()),
            // A path may have spaces.
            _ if !values.is_empty() => arguments.push(values.join(" ")),
            _ => {}
        }
    }
    arguments.extend(["--format", "json"].map(str::to_owned));
    arguments
}

/// The result that `run --format json` prints.
fn row_of(output: &str, seed: u64) -> Result<Row, String> {
    let mut lines = output.lines();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        let count = output.lines().count();
        return Err(format!(
            "printed {count} lines, where one result is expected"
        ));
    };
    let row: Row = serde_json::from_str(line)
        .map_err(|error| format!("printed no result of `shed-sim run`: {error}"))?;
    if row.seed != seed {
        return Err(format!(
            "printed a result of seed {} instead of {seed}",
            row.seed
        ));
    }
    if row.policy.split('{').next() != Some(OWN) {
        return Err(format!(
            "printed a result of `{}`, not of {OWN}",
            row.policy
        ));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(policy: &str) -> String {
        let row = serde_json::json!({
            "trace": "setup:A", "policy": policy, "order": "lst", "slots": 24, "load": 0.6,
            "deadline_factor": 1.5, "attempt_model": "trace", "seed": 7, "wall_s": 0.1,
            "jobs": 12, "jobs_with_deadline": 12, "jobs_met": 9, "jobs_completed": 10, "pocd": 0.75,
            "mean_flowtime_s": 3.0, "p50_flowtime_s": 3.0, "p90_flowtime_s": 3.0, "p99_flowtime_s": 3.0,
            "machine_seconds": 50.0, "machine_seconds_wasted": 5.0, "tasks": 60, "attempts": 70, "clones": 9,
            "clone_wins": 3, "kills": 10, "failures": 0, "disruptions": 0, "utilisation": 0.5,
            "events": 100, "digest": "00",
        });
        format!("{row}\n")
    }

    #[test]
    fn a_result_is_read_with_its_figures() {
        let row = row_of(&line("shed-prime{min_gain=0.01}"), 7).expect("a row");
        assert_eq!((row.figures.pocd, row.figures.clones), (Some(0.75), 9));
        // Keys that the frozen program does not have yet.
        assert_eq!(row.figures.cut_short, 0);
    }

    #[test]
    fn other_output_is_refused_with_what_is_wrong() {
        let good = line("shed-prime");
        for (output, seed, what) in [
            ("", 7, "printed 0 lines"),
            (&*format!("{good}{good}"), 7, "printed 2 lines"),
            ("policy  met %\n", 7, "no result of `shed-sim run`"),
            ("{\"seed\":7}\n", 7, "missing field"),
            (&good, 8, "seed 7 instead of 8"),
            (
                &line("shed-plus{xi=0.1}"),
                7,
                "of `shed-plus{xi=0.1}`, not of shed-prime",
            ),
        ] {
            let error = row_of(output, seed).expect_err(what);
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn the_program_gets_the_presets_flags_and_its_own_policy() {
        let cell = "--preset A --check --trace my traces/t.csv --policy shed-prime@frozen --load 0.6 --seed 7";
        let expected = [
            "run",
            "--check",
            "--trace",
            "my traces/t.csv",
            "--policy",
            "shed-prime",
            "--load",
            "0.6",
            "--seed",
            "7",
            "--format",
            "json",
        ];
        assert_eq!(arguments(cell), expected);
    }

    #[test]
    fn a_missing_or_a_different_program_is_named_with_the_fix() {
        for (program, what) in [
            ("/nowhere/shed-sim", "can't be started"),
            ("/bin/echo", "is not a shed-sim"),
        ] {
            let error = Frozen::new(Path::new(program)).expect_err(what).to_string();
            for part in ["--frozen", program, what, "frozen.sh"] {
                assert!(error.contains(part), "{part} is not in: {error}");
            }
        }
    }
}
