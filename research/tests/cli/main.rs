//! The command line as a user meets it.

mod bound;
mod calibrate;
#[path = "../../../crates/shed-sim/tests/cli/common.rs"]
#[expect(dead_code, reason = "the simulator's tests use more of it")]
mod common;
mod fit;
mod frontier;
#[path = "../../../crates/shed-sim/tests/cli/help.rs"]
mod help;
mod laser;
mod league;
mod report;
mod reproduce;
mod traces;

const PROGRAM: &str = "shed-lab";

const SUB_COMMANDS: [&str; 9] = [
    "bound",
    "calibrate",
    "reproduce",
    "report",
    "fit",
    "laser train",
    "league",
    "frontier",
    "completion",
];

/// Some flags, of several sub-commands.
const FLAGS: [&str; 3] = ["deadline-factor", "tail-share", "title"];

/// The program under test. The simulator's own sub-commands make the laboratory's input.
fn program(args: &[&str]) -> &'static str {
    match args.first() {
        Some(&("run" | "sweep" | "compare" | "replay")) => {
            env!("CARGO_BIN_EXE_shed-sim-for-tests")
        }
        _ => env!("CARGO_BIN_EXE_shed-lab"),
    }
}
