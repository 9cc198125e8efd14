//! The verbs, one module each. A module has the verb's arguments, `run`, and a pure function from data to text.

pub mod adopt;
pub mod check;
pub mod clone_stops;
pub mod completion;
pub mod release;
pub mod report;
pub mod status;
pub mod version;
