//! Why events are dropped.

pub const QUEUE_FULL: &str = "queue_full";
pub const RATE_LIMIT: &str = "rate_limit";
pub const REFUSED: &str = "refused";
pub const TIMEOUT: &str = "timeout";
/// All of them.
pub const ALL: [&str; 4] = [QUEUE_FULL, RATE_LIMIT, REFUSED, TIMEOUT];
