//! What `size` searches: workloads by seed, policies, the range of sizes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use shed_core::time::Span;

use super::{By, SizeArgs, cluster};
use crate::cli::CliError;
use crate::cli::compare::COMPARED;
use crate::cli::lists::{self, Cell, Lists};
use crate::cli::options::{Prepared, RunOptions};
use crate::engine::Engine;
use crate::settings::{Cluster, Settings};
use crate::sizing::grid::Grid;
use crate::sizing::limits;
use crate::sizing::search::Search;
use crate::sizing::shape::Shape;
use crate::sizing::share::Deadlines;
use crate::trace::{Job, Trace};
use crate::workload;

/// How many seeds unless a flag says so.
const SEEDS: u64 = 10;

/// Everything but the search.
pub(super) struct Plan {
    pub(super) by: By,
    /// Nodes or slots, in the plural.
    pub(super) unit: &'static str,
    /// The trace's name.
    pub(super) trace: String,
    pub(super) grid: Grid,
    /// Whether `--most` is not the user's.
    pub(super) most_is_default: bool,
    /// What there is now, in steps of the search.
    pub(super) today: Option<u32>,
    /// One per policy.
    pub(super) contenders: Vec<Contender>,
    /// One per seed.
    pub(super) cases: Vec<Case>,
    /// Whether the jobs of all seeds are the same.
    pub(super) same_jobs: bool,
    /// Nodes or slots of the given cluster.
    pub(super) cluster_size: u32,
    shape: Shape,
}

/// A policy.
pub(super) struct Contender {
    /// The policy as it was typed, with what tells it from the others.
    pub(super) name: String,
    /// The policy with all its parameters.
    pub(super) policy: String,
    pub(super) order: String,
    /// By seed.
    settings: Vec<Settings>,
}

/// The workload of a seed.
pub(super) struct Case {
    workload: Trace,
    /// Deadlines of jobs that fit no node, and which jobs these are.
    pub(super) without_node: Lost,
    /// The same of jobs that are late on any cluster of that shape.
    pub(super) always_late: Lost,
    /// Deadlines, all of them.
    pub(super) deadlines: usize,
}

/// Deadlines that no size meets.
#[derive(Default)]
pub(super) struct Lost {
    pub(super) deadlines: usize,
    pub(super) jobs: BTreeSet<Arc<str>>,
}

impl Plan {
    pub(super) fn new(args: &SizeArgs) -> Result<Self, CliError> {
        require_one_workload(&args.lists)?;
        let (cells, seeds) = policies_and_seeds(args.lists.cells()?, args);
        let base = &cells[0];
        let given = cluster::given(base, args.by)?;
        // Without --load and --deadline-factor the workload does not depend on the cluster.
        let reference = given.clone().unwrap_or(Cluster::Slots(1));
        let mut contenders = contenders(&cells)?;
        let cases = cases(&cells, &seeds, &reference, &mut contenders)?;
        let mut plan = Self {
            by: args.by,
            unit: cluster::unit(base, given.as_ref()),
            trace: base.trace.display().to_string(),
            grid: Grid {
                least: 1,
                most: 1,
                start: 1,
            },
            most_is_default: args.most.is_none(),
            today: given.map(|given| cluster::today(base, args.by, &given)),
            contenders,
            cases,
            same_jobs: !is_made_up(&base.trace) && base.cut.window.is_none(),
            cluster_size: cluster::size(&reference),
            shape: Shape::of(&reference),
        };
        plan.require_deadlines()?;
        plan.grid = plan.range(args)?;
        Ok(plan)
    }

    /// The share of deadlines that no size can exceed.
    pub(super) fn reachable(&self) -> f64 {
        let lost = self.cases.iter().map(|case| case.lost(self.by));
        1.0 - lost.sum::<usize>() as f64 / self.deadlines() as f64
    }

    /// Deadlines of all seeds.
    pub(super) fn deadlines(&self) -> usize {
        self.cases.iter().map(|case| case.deadlines).sum()
    }

    /// How many deadlines an interval counts at most.
    pub(super) fn sample(&self) -> usize {
        match self.same_jobs {
            true => self.deadlines() / self.cases.len().max(1),
            false => self.deadlines(),
        }
    }

    /// How many deadlines a policy meets at a size, on a seed.
    pub(super) fn run(
        &self,
        contender: usize,
        size: u32,
        case: usize,
    ) -> Result<Deadlines, CliError> {
        let mut settings = self.contenders[contender].settings[case].clone();
        let case = &self.cases[case];
        let value = self.by.value(size);
        let outcome = match self.by {
            By::Nodes => {
                settings.cluster = self.shape.cluster(size);
                Engine::new(&settings, &case.workload).run()?
            }
            By::Lambda => {
                settings.policy.capacity_share = value;
                Engine::new(&settings, &case.workload).run()?
            }
            By::Deadline => {
                let workload = with_deadlines_times(value, &case.workload);
                Engine::new(&settings, &workload).run()?
            }
        };
        Ok(Deadlines {
            all: case.deadlines,
            met: outcome.jobs.iter().filter(|job| job.met()).count(),
        })
    }

    /// What the next runs are for.
    pub(super) fn open(&self, searches: &[Search], wanted: &[(usize, u32)]) -> String {
        let contenders = self.contenders.iter().zip(searches).enumerate();
        let open = contenders.filter(|(at, _)| wanted.iter().any(|(of, _)| of == at));
        let names = open.map(|(_, (contender, search))| {
            let name = &contender.name;
            let value = |size: u32| self.by.value(size);
            match search.bracket() {
                (None, None) => name.clone(),
                (Some(failed), None) => format!("{name} (above {})", value(failed)),
                (None, Some(enough)) => format!("{name} (at most {})", value(enough)),
                (Some(failed), Some(enough)) => {
                    format!("{name} ({} to {})", value(failed), value(enough))
                }
            }
        });
        let names: Vec<String> = names.collect();
        let (sizes, seeds) = (wanted.len(), self.cases.len());
        let (open, all) = (names.len(), searches.len());
        let names = names.join(", ");
        format!("{sizes} × {seeds} runs; {open} of {all} policies open: {names}")
    }

    fn require_deadlines(&self) -> Result<(), CliError> {
        if self.deadlines() > 0 {
            return Ok(());
        }
        let message = format!(
            "{}: no job has a deadline: give --deadline-factor, or a trace with the column deadline_s",
            self.trace
        );
        Err(CliError::Usage(message))
    }

    /// The sizes that are searched.
    fn range(&self, args: &SizeArgs) -> Result<Grid, CliError> {
        let (least, most, start) = match self.by {
            By::Nodes => {
                let enough = self.enough();
                let start = self.today.unwrap_or_else(|| self.busy());
                (self.smallest(), enough.max(start), start)
            }
            By::Lambda => (1, 100, self.today.unwrap_or(100)),
            By::Deadline => (10, 1000, 100),
        };
        let steps = self.by.steps();
        let grid = Grid {
            least: args.least.map_or(least, |own| {
                ((own * steps).round() as u32).max(match self.by {
                    By::Nodes => least,
                    By::Lambda | By::Deadline => 1,
                })
            }),
            most: args.most.map_or(most, |own| (own * steps).round() as u32),
            start,
        };
        if self.by == By::Lambda && grid.most > 100 {
            return Err(CliError::Usage("--most: λ is at most 1".into()));
        }
        if grid.least > grid.most {
            let (least, most) = (self.by.value(grid.least), self.by.value(grid.most));
            let message =
                format!("--most {most} is below the smallest size that can be tried, {least}");
            return Err(CliError::Usage(message));
        }
        Ok(grid)
    }

    /// The first size whose nodes hold an attempt of every job.
    fn smallest(&self) -> u32 {
        let holds = |size: &u32| {
            let cluster = self.shape.cluster(*size);
            let mut cases = self.cases.iter();
            cases.all(|case| limits::without_node(&case.workload, &cluster).is_empty())
        };
        let sizes = 1..self.today.unwrap_or(1).max(1);
        sizes
            .into_iter()
            .find(holds)
            .unwrap_or(self.today.unwrap_or(1))
    }

    /// Twice what the tasks need if none waits, so that each can have a clone.
    fn enough(&self) -> u32 {
        let settings = self
            .contenders
            .iter()
            .flat_map(|contender| contender.settings.first());
        let peaks = self.cases.iter().zip(settings.cycle());
        let peak = peaks
            .map(|(case, settings)| limits::peak(&case.workload, settings))
            .max();
        let attempts = 2.0 * f64::from(peak.unwrap_or(1));
        (attempts / self.attempts_per_unit()).ceil().max(1.0) as u32
    }

    /// As many as the tasks keep busy if they are spread over the time of arrivals.
    fn busy(&self) -> u32 {
        let of = |case: &Case| {
            let jobs = &case.workload.jobs;
            let work: f64 = jobs
                .iter()
                .flat_map(|job| job.durations())
                .map(|span| span.0 as f64)
                .sum();
            let ends = jobs
                .iter()
                .map(|job| job.arrival.plus(job.deadline.unwrap_or(Span(0))).0);
            let span = ends.max().unwrap_or(0) - jobs.first().map_or(0, |job| job.arrival.0);
            work / span.max(1) as f64
        };
        let most = self.cases.iter().map(of).fold(1.0, f64::max);
        (most / self.attempts_per_unit()).ceil() as u32
    }

    fn attempts_per_unit(&self) -> f64 {
        let size = self
            .today
            .filter(|_| self.by == By::Nodes)
            .unwrap_or(1)
            .max(1);
        let cluster = self.shape.cluster(size);
        let of = |case: &Case| workload::check(&case.workload, &cluster).ok();
        let attempts = self.cases.first().and_then(of).unwrap_or(size);
        f64::from(attempts.max(1)) / f64::from(size)
    }
}

impl Case {
    fn new(prepared: Prepared, without_node: Lost) -> Self {
        let Prepared {
            settings, workload, ..
        } = prepared;
        let mut always_late = Lost::default();
        for at in limits::always_late(&workload, &settings) {
            always_late.add(&workload.jobs[at]);
        }
        let with_deadline = workload.jobs.iter().filter(|job| job.deadline.is_some());
        Self {
            deadlines: with_deadline.count() + without_node.deadlines,
            workload,
            without_node,
            always_late,
        }
    }

    /// Deadlines that no size meets.
    pub(super) fn lost(&self, by: By) -> usize {
        match by {
            By::Nodes | By::Lambda => self.without_node.deadlines + self.always_late.deadlines,
            By::Deadline => self.without_node.deadlines,
        }
    }
}

impl Lost {
    pub(super) fn add(&mut self, job: &Job) {
        self.deadlines += 1;
        self.jobs.insert(Arc::clone(&job.id));
    }
}

fn require_one_workload(lists: &Lists) -> Result<(), CliError> {
    // Results name their policy, not its rule for stages.
    let is_named = |flag: &&str| COMPARED.contains(flag) && *flag != "--stage-deadlines";
    let mut several = lists.several().filter(|flag| !is_named(flag));
    match several.next() {
        None => Ok(()),
        Some(flag) => Err(CliError::Usage(format!(
            "{flag} takes one value here, as size searches one workload at a time; --policy, --order, \
             --policy-file and --seed take lists"
        ))),
    }
}

/// The flags per policy, and all seeds.
fn policies_and_seeds(cells: Vec<Cell>, args: &SizeArgs) -> (Vec<RunOptions>, Vec<u64>) {
    let seeds: BTreeSet<u64> = match args.seeds {
        None if args.lists.is_given("--seed") => {
            cells.iter().map(|cell| cell.options.seed).collect()
        }
        count => (0..count.map_or(SEEDS, |count| count as u64)).collect(),
    };
    let mut names = BTreeSet::new();
    let policies = cells.into_iter().filter(|cell| {
        let name = lists::without(&cell.name, &["--seed"]);
        names.insert(name)
    });
    let policies = policies.map(|cell| cell.options).collect();
    (policies, seeds.into_iter().collect())
}

fn contenders(cells: &[RunOptions]) -> Result<Vec<Contender>, CliError> {
    let orders: BTreeSet<String> = cells.iter().map(|cell| cell.order.to_string()).collect();
    let files: BTreeSet<_> = cells.iter().map(RunOptions::file).collect();
    let contender = |cell: &RunOptions| {
        let policy = cell.policy()?;
        let mut name = cell.policy.clone();
        if orders.len() > 1 {
            name.push_str(&format!(" {}", cell.order));
        }
        if let Some(file) = cell.file().filter(|_| files.len() > 1) {
            name.push_str(&format!(" {}", file.display()));
        }
        Ok(Contender {
            name,
            policy: cell.policy_text(&policy),
            order: policy.order.to_string(),
            settings: Vec::new(),
        })
    };
    cells.iter().map(contender).collect()
}

/// The workloads, each shaped for the cluster. Policies get the settings of each seed.
fn cases(
    cells: &[RunOptions],
    seeds: &[u64],
    cluster: &Cluster,
    contenders: &mut [Contender],
) -> Result<Vec<Case>, CliError> {
    let base = &cells[0];
    let read = match is_made_up(&base.trace) {
        true => None,
        false => Some(base.read_trace()?),
    };
    let case = |&seed: &u64| {
        let of = |cell: &RunOptions| RunOptions {
            seed,
            ..cell.clone()
        };
        let options = of(base);
        let trace = match &read {
            Some(trace) => trace.clone(),
            None => options.read_trace()?,
        };
        let (trace, without_node) = cluster::placeable(options.cut(trace), cluster, &options)?;
        for (contender, cell) in contenders.iter_mut().zip(cells) {
            let prepared = of(cell).prepare_cut(trace.clone(), cluster.clone())?;
            contender.settings.push(prepared.settings);
        }
        let prepared = options.prepare_cut(trace, cluster.clone())?;
        Ok(Case::new(prepared, without_node))
    };
    seeds.iter().map(case).collect()
}

fn is_made_up(trace: &Path) -> bool {
    trace.to_string_lossy().starts_with("setup:")
}

fn with_deadlines_times(factor: f64, workload: &Trace) -> Trace {
    let mut workload = workload.clone();
    for job in &mut workload.jobs {
        let scaled = |deadline: Span| Span((deadline.0 as f64 * factor).round() as i64);
        job.deadline = job.deadline.map(scaled);
    }
    workload
}
