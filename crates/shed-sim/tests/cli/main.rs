//! The command line from a user's view.

mod common;
mod edge_cases;
mod faults;
mod help;
mod moved;
mod presets;
mod run;
mod size;
mod sweep;

const PROGRAM: &str = "shed-sim";

const SUB_COMMANDS: [&str; 6] = ["run", "sweep", "compare", "size", "replay", "completion"];

/// Some flags, of several sub-commands.
const FLAGS: [&str; 4] = ["deadline-factor", "attempts", "metric", "target"];

/// The program under test.
fn program(_args: &[&str]) -> &'static str {
    env!("CARGO_BIN_EXE_shed-sim")
}
