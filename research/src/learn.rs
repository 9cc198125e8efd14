//! Training data of LASER's networks, from simulated runs.

use crate::laser::samples::{Collector, Extra, Samples};
use shed_core::memory::Memory;
use shed_core::plan::{Plan, Settled};
use shed_core::policy::Speculation;
use shed_core::snapshot::{JobSnapshot, Snapshot};
use shed_papers::Laser;
use shed_papers::laser::Source;
use shed_record::schema::Ended;

use shed_sim::cli::{CliError, Prepared, RunOptions};
use shed_sim::engine::{Engine, Watch};
use shed_sim::settings::Passes;
use shed_sim::trace::Trace;

/// Passes the events of a run to a collector.
struct Watched(Collector);

impl Watch for Watched {
    fn pass(&mut self, snapshot: &Snapshot, _memory: Memory, _plan: &Plan) {
        self.0.pass(snapshot);
    }

    fn settled(&mut self, job: &JobSnapshot, action: &Settled) {
        if let Some(ended) = Ended::by(job, action) {
            self.0.ended(ended);
        }
    }
}

/// One seed, run twice: without clones for the tasks' times, and with a random number of clones for
/// the jobs' times. `imputing` generates the numbers that replace zeros.
pub(crate) fn of_seed(
    options: &RunOptions,
    trace: Option<&Trace>,
    laser: &Laser,
    imputing: u64,
) -> Result<Samples, CliError> {
    let prepare = || match trace {
        Some(trace) => options.prepare_with(trace.clone()),
        None => options.prepare(),
    };
    let mut plain = laser.clone();
    plain.terms.max_clones = 0;
    plain.source = Source::Drawn(options.seed);
    let drawn = Laser {
        source: Source::Drawn(options.seed),
        ..laser.clone()
    };
    let tasks = watch(prepare()?, plain, options.seed, imputing)?;
    let jobs = watch(prepare()?, drawn, options.seed, imputing)?;
    Ok(Samples {
        task: tasks.task,
        ..jobs
    })
}

fn watch(
    mut prepared: Prepared,
    laser: Laser,
    drawn: u64,
    imputing: u64,
) -> Result<Samples, CliError> {
    prepared.settings.passes = Passes::Full;
    prepared.settings.policy.speculation = Speculation::new(laser.clone());
    let mut watched = Watched(Collector::new(laser, Extra::Drawn(drawn), imputing));
    let engine = Engine::new(&prepared.settings, &prepared.workload);
    engine.watched(&mut watched).run()?;
    let samples = watched.0.finish();
    Ok(Samples {
        // Jobs that no pass saw were run too.
        jobs: prepared.workload.jobs.len().max(samples.jobs),
        ..samples
    })
}
