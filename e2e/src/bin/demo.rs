//! The demo, from nothing to the result: `demo [REPETITIONS]`, or REPEAT in the environment; `demo cron`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use shed_e2e::demo::Show;

#[tokio::main]
async fn main() -> ExitCode {
    match demo().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Without the backtrace that `Result` would print: what went wrong is outside.
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn demo() -> Result<bool> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("cron") {
        return shed_e2e::demo::run(Show::Cron).await;
    }
    let given = argument.or_else(|| std::env::var("REPEAT").ok());
    let repeat = match given.filter(|text| !text.is_empty()) {
        Some(text) => text
            .parse()
            .ok()
            .filter(|&times| times > 0)
            .context("REPEAT must be a number above 0, e.g. REPEAT=10")?,
        None => 1,
    };
    shed_e2e::demo::run(Show::Straggler { repeat }).await
}
