//! Entry point of the one binary: parse arguments, start, nothing else.

use clap::Parser;

fn main() -> anyhow::Result<()> {
    shed::cli::Args::parse().run()
}
