//! Why events are dropped.

pub const QUEUE_FULL: &str = "queue_full";
pub const REFUSED: &str = "refused";
pub const TIMEOUT: &str = "timeout";
/// All of them.
pub const ALL: [&str; 3] = [QUEUE_FULL, REFUSED, TIMEOUT];
