//! The verbs, one module each. A module has the verb's arguments, `run`, and a pure function from data to text.

pub mod status;
