//! The command line from a user's view.

mod common;
mod faults;
mod help;
mod moved;
mod presets;
mod run;
mod sweep;

const PROGRAM: &str = "shed-sim";

const SUB_COMMANDS: [&str; 5] = ["run", "sweep", "compare", "replay", "completion"];

/// Some flags, of several sub-commands.
const FLAGS: [&str; 3] = ["deadline-factor", "attempts", "metric"];

/// The program under test.
fn program(_args: &[&str]) -> &'static str {
    env!("CARGO_BIN_EXE_shed-sim")
}
