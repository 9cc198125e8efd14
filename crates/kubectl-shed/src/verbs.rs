//! The verbs, one module each. A module has the verb's arguments, `run`, and pure functions from data to text.

pub mod explain;
pub mod nodes;
pub mod status;
pub mod timeline;
pub mod top;
