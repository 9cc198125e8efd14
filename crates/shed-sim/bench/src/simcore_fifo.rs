//! Central FIFO on slots as a component of simcore.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use serde::Serialize;
use shed_sim::trace::Trace;
use simcore::{Event, EventHandler, Simulation, SimulationContext, cast};

#[derive(Clone, Serialize)]
struct Arrival {
    job: usize,
}

#[derive(Clone, Serialize)]
struct End {
    job: usize,
}

struct Fifo<'a> {
    context: SimulationContext,
    trace: &'a Trace,
    free: u32,
    /// Jobs with tasks to start, and how many were started.
    waiting: VecDeque<(usize, usize)>,
    open: Vec<usize>,
    done: usize,
}

impl Fifo<'_> {
    fn durations(&self, job: usize) -> &[shed_core::time::Span] {
        &self.trace.jobs[job].stages[0].durations
    }

    fn start(&mut self) {
        while self.free > 0 {
            let Some((job, started)) = self.waiting.pop_front() else {
                return;
            };
            let duration = self.durations(job)[started].seconds();
            self.context.emit_self(End { job }, duration);
            self.free -= 1;
            if started + 1 < self.durations(job).len() {
                self.waiting.push_front((job, started + 1));
            }
        }
    }
}

impl EventHandler for Fifo<'_> {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Arrival { job } => {
                self.waiting.push_back((job, 0));
                if let Some(next) = self.trace.jobs.get(job + 1) {
                    let gap = next.arrival.since(self.trace.jobs[job].arrival);
                    self.context
                        .emit_self(Arrival { job: job + 1 }, gap.seconds());
                }
            }
            End { job } => {
                self.free += 1;
                self.open[job] -= 1;
                self.done += usize::from(self.open[job] == 0);
            }
        });
        self.start();
    }
}

/// Events and seconds of a run.
pub fn run(trace: &Trace, slots: u32) -> (u64, f64) {
    // Handlers live as long as the simulation, which requires them to borrow nothing.
    let trace: &'static Trace = Box::leak(Box::new(trace.clone()));
    let started = Instant::now();
    let mut simulation = Simulation::new(1);
    let context = simulation.create_context("fifo");
    let tasks = trace.jobs.iter().map(|job| job.stages[0].durations.len());
    let fifo = Rc::new(RefCell::new(Fifo {
        context,
        trace,
        free: slots,
        waiting: VecDeque::new(),
        open: tasks.collect(),
        done: 0,
    }));
    simulation.add_handler("fifo", fifo.clone());
    fifo.borrow().context.emit_self(Arrival { job: 0 }, 0.0);
    simulation.step_until_no_events();
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(fifo.borrow().done, trace.jobs.len());
    (simulation.event_count(), seconds)
}
