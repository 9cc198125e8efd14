//! The demo, from nothing to the result: `demo [REPETITIONS]`, or REPEAT in the environment.

use std::process::ExitCode;

use anyhow::{Context, Result};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let repeat = std::env::args()
        .nth(1)
        .or_else(|| std::env::var("REPEAT").ok())
        .filter(|text| !text.is_empty());
    let repeat = repeat
        .map_or(Ok(1), |text| text.parse())
        .context("how often to repeat must be a number, e.g. REPEAT=10")?;
    let good = shed_e2e::demo::run(repeat).await?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
