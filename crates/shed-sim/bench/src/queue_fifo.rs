//! The same central FIFO as in `simcore_fifo`, on the simulator's event queue alone: no facts, no
//! `settle`, no `decide`.

use std::collections::VecDeque;
use std::time::Instant;

use shed_core::time::Instant as Time;
use shed_sim::event::{AttemptRef, Event, EventQueue};
use shed_sim::trace::Trace;

struct Fifo<'a> {
    queue: EventQueue,
    trace: &'a Trace,
    free: u32,
    /// Jobs with tasks to start, and how many were started.
    waiting: VecDeque<(u32, usize)>,
    open: Vec<usize>,
    done: usize,
}

impl Fifo<'_> {
    fn on(&mut self, now: Time, event: Event) {
        match event {
            Event::Arrival(job) => {
                self.waiting.push_back((job, 0));
                if let Some(next) = self.trace.jobs.get(job as usize + 1) {
                    self.queue.put(next.arrival, Event::Arrival(job + 1));
                }
            }
            Event::End(AttemptRef { slot: job, .. }) => {
                self.free += 1;
                self.open[job as usize] -= 1;
                self.done += usize::from(self.open[job as usize] == 0);
            }
            _ => {}
        }
        self.start(now);
    }

    fn start(&mut self, now: Time) {
        while self.free > 0 {
            let Some((job, started)) = self.waiting.pop_front() else {
                return;
            };
            let durations = &self.trace.jobs[job as usize].stages[0].durations;
            let name = AttemptRef {
                slot: job,
                generation: started as u32,
            };
            self.queue
                .put(now.plus(durations[started]), Event::End(name));
            self.free -= 1;
            if started + 1 < durations.len() {
                self.waiting.push_front((job, started + 1));
            }
        }
    }
}

/// Events and seconds of a run.
pub fn run(trace: &Trace, slots: u32) -> (u64, f64) {
    let started = Instant::now();
    let tasks = trace.jobs.iter().map(|job| job.stages[0].durations.len());
    let mut fifo = Fifo {
        queue: EventQueue::default(),
        trace,
        free: slots,
        waiting: VecDeque::new(),
        open: tasks.collect(),
        done: 0,
    };
    if let Some(first) = trace.jobs.first() {
        fifo.queue.put(first.arrival, Event::Arrival(0));
    }
    while let Some(now) = fifo.queue.next_at() {
        while let Some(event) = fifo.queue.take_at(now) {
            fifo.on(now, event);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(fifo.done, trace.jobs.len());
    (fifo.queue.taken(), seconds)
}
