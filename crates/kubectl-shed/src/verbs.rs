//! The verbs, one module each. A module has the verb's arguments, `run`, and pure functions from data to text.

pub mod adopt;
pub mod check;
pub mod clone_stops;
pub mod completion;
pub mod explain;
pub mod nodes;
pub mod release;
pub mod report;
pub mod status;
pub mod suggest;
pub mod timeline;
pub mod top;
pub mod version;
pub mod whatif;
