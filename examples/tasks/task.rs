//! Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
//! Without shed it does the same work from the start.
use std::{env, error::Error, fs, thread, time::Duration};

const UNITS: u32 = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let report = env::var("SHED_PROGRESS_FILE").ok();
    let checkpoint = env::var("SHED_RESUME_FILE").unwrap_or("/dev/null".into()) + ".checkpoint";
    let step: f64 = env::var("STEP").map_or(Ok(1.0), |text| text.parse())?;
    let first = fs::read_to_string(checkpoint).map_or(Ok(0), |text| text.parse())?;
    println!("begins at unit {first}");
    for unit in first + 1..=UNITS {
        thread::sleep(Duration::from_secs_f64(step)); // the work on one unit
        let Some(report) = &report else { continue };
        let text = format!(r#"{{"progress":"{unit}/{UNITS}","checkpoint":"{unit}"}}"#);
        fs::write(format!("{report}.new"), text)?;
        fs::rename(format!("{report}.new"), report)?;
    }
    Ok(())
}
