//! `report`: one HTML file of tables and figures from the results of other sub-commands. It needs
//! no network and no script, and can be printed.

mod chart;
mod details;
pub(super) mod figures;
mod lines;
mod names;
mod page;
mod results;

use std::path::{Path, PathBuf};

use clap::Args;

use details::{Attempts, Jobs};
use lines::Line;
use names::Names;
use page::{Compared, Report};
use results::Results;
use shed_record::InputError;
use shed_sim::cli::{CliError, files};

pub(super) const EXAMPLES: &str = "\
Each line of a file tells by its fields what it is; files of one kind may be given in any number.

Examples:
  From a sweep: deadlines met over load, cost, tables with confidence intervals:
    shed-lab report --out report.html results.jsonl
  With the distribution of flow times and one job's attempts:
    shed-sim run --trace jobs.csv --slots 200 --deadline-factor 1.5 --format json \\
        --jobs jobs.jsonl --attempts attempts.csv.gz > run.jsonl
    shed-lab report --out report.html run.jsonl jobs.jsonl attempts.csv.gz
  A job of one's own choice, and a comparison:
    shed-sim compare … --format json > compared.jsonl
    shed-lab report --out report.html --job j17 --title 'Night batch' compared.jsonl attempts.csv.gz";

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// File for the report.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The page's title.
    #[arg(long, value_name = "TEXT", default_value = "Simulation report")]
    title: String,
    /// The job whose attempts are shown [default: the job with the most clones].
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Outputs of run, sweep and compare (--format json or csv), run --jobs, run --attempts; gzip
    /// or plain.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// All that the files hold.
#[derive(Default)]
struct Rows {
    results: Results,
    compared: Vec<Compared>,
    jobs: Jobs,
    attempts: Attempts,
}

pub(super) fn run(args: &ReportArgs) -> Result<(), CliError> {
    let mut rows = Rows::default();
    for file in &args.files {
        lines::for_each(file, |line| rows.take(file, line))?;
    }
    let histories = rows.histories(args)?;
    let mut policies = rows.results.policies();
    policies.extend(rows.jobs.policies());
    policies.extend(histories.iter().map(|history| history.policy.clone()));
    let report = Report {
        title: &args.title,
        files: &args.files,
        runs: rows.results.runs,
        workloads: rows.results.workloads(),
        compared: &rows.compared,
        jobs: &rows.jobs,
        histories: &histories,
        names: Names::of(&policies),
    };
    files::write_text(&args.out, &page::render(&report)?)?;
    eprintln!("report: {}", args.out.display());
    Ok(())
}

impl Rows {
    fn take(&mut self, file: &Path, line: &Line<'_>) -> Result<(), InputError> {
        if line.has(&page::COMPARED) {
            self.compared.push(Compared::of(line)?);
            Ok(())
        } else if line.has(&results::TYPICAL_FIELDS) {
            self.results.take(line)
        } else if line.has(&details::ATTEMPT) {
            self.attempts.take(file, line)
        } else if line.has(&details::JOB) {
            self.jobs.take(line)
        } else {
            Err(line.fault(format!(
                "is no result of run, sweep or compare, no job and no attempt; expected are the \
                 fields {}, or {}, or {}, or {}; it has: {}",
                results::TYPICAL_FIELDS.join(", "),
                page::COMPARED.join(", "),
                details::JOB.join(", "),
                details::ATTEMPT.join(", "),
                line.names(),
            )))
        }
    }

    fn histories(&self, args: &ReportArgs) -> Result<Vec<details::History>, CliError> {
        let job = match &args.job {
            Some(job) if !self.attempts.has(job) => {
                let message = match self.attempts.is_empty() {
                    true => "--job needs a file of attempts (run --attempts)".to_owned(),
                    false => format!("no attempt of job `{job}` is in the files"),
                };
                return Err(CliError::Usage(message));
            }
            Some(job) => Some(job.as_str()),
            None => self.attempts.most_cloned(),
        };
        match job {
            Some(job) => Ok(self.attempts.histories(job)?),
            None => Ok(Vec::new()),
        }
    }
}
