//! The simulator's program, for tests: cargo gives a crate's tests the programs of that crate alone.

use std::process::ExitCode;

fn main() -> ExitCode {
    shed_sim::policies::install(shed_papers::registry());
    shed_sim::cli::main()
}
