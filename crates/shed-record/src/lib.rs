//! Recordings of the planner: every snapshot that it saw and every plan that it made, so that a
//! decision can be made again, bit by bit, and others can be tried on the same facts.
//!
//! A recording is a folder of files `shed-recording-00000000.jsonl.gz`, ascending. Each is JSON lines,
//! compressed, and can be read by itself: the oldest are removed as new ones come.
//!
//! | line | what |
//! |---|---|
//! | `{"header":…}` | The first line of each file: schema, version, policy, and what the planner remembered. |
//! | `{"pass":…}` | One planning pass: what changed since the pass before, which jobs the planner had to look at, and the plan. |
//! | `{"ended":…}` | An attempt that was counted, with its times. |
//! | `{"gap":…}` | Lines that could not be written, or none. The planner's memory follows in full. |
//!
//! The planner keeps findings from pass to pass. The first pass of a file looks at every job, and so does a pass after a
//! gap. So each file can be replayed by itself: [`Writer::needs_full_pass`] and [`Recorder::needs_full_pass`] return when
//! the planner must make such a pass, and [`Replayer`] decides the passes again.
//!
//! [`Writer`] writes a recording; [`Recorder`] does so on a thread of its own and never makes its
//! caller wait; [`Reader`] reads one.
//!
//! A recording of decisions by LASER's networks holds these networks. They have a file of their own too
//! ([`read_networks`]).

mod delta;
mod error;
mod files;
mod reader;
mod recorder;
mod replayer;
pub mod schema;
mod writer;

pub use error::InputError;
pub use reader::{Item, Reader};
pub use recorder::{Fault, Recorder};
pub use replayer::Replayer;
pub use writer::{Basis, Pass, WriteError, Writer};

#[cfg(test)]
mod tests;
