//! The bound of a job's tasks. No job can use more slots, so a question about slots has the same bound.

/// Tasks of one job at most.
pub const TASKS_MAX: u32 = 100_000;

/// Reads the slots of a question.
pub fn parse_slots(text: &str) -> Result<u32, String> {
    parse_whole(text, TASKS_MAX)
}

/// Reads a whole number from 1 to this one.
pub fn parse_whole(text: &str, most: u32) -> Result<u32, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("use a whole number from 1 to {most}"))
}
