//! The file of LASER's trained networks: JSON, and read back bit by bit.

use serde::Deserialize;

use crate::laser::{Networks, VERSION, version_fault};

/// The name of the file in a recording.
pub const NAME: &str = "laser.json";

/// The text of a file.
///
/// # Errors
/// If JSON cannot hold a number.
pub fn networks_to_text(networks: &Networks) -> serde_json::Result<String> {
    serde_json::to_string(networks).map(|text| text + "\n")
}

/// Decodes the text of a file.
///
/// # Errors
/// The field and the remedy, if the text is cut off or has another format or version, or if its
/// features differ from those of this version in their order.
pub fn read_networks(text: &str) -> Result<Networks, String> {
    check_version(text)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let networks = serde_path_to_error::deserialize(&mut json);
    let networks: Networks = networks.map_err(|fault| {
        let field = fault.path().to_string();
        of_field(&field, format!("{}; {RETRAIN}", fault.inner()))
    })?;
    json.end().map_err(|fault| format!("{fault}; {RETRAIN}"))?;
    let checked = networks.check();
    checked.map_err(|fault| of_field(&fault.field, fault.message))?;
    Ok(networks)
}

const RETRAIN: &str = "copy the file again, or train new networks by `shed-lab laser train`";

fn of_field(field: &str, message: String) -> String {
    if field == "." {
        message
    } else {
        format!("field `{field}`: {message}")
    }
}

/// Before all else: of another version nothing else may be understood.
fn check_version(text: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Version {
        version: Option<u64>,
    }
    let head: Version = serde_json::from_str(text).map_err(|fault| {
        let is_cut = fault.is_eof() || text.starts_with('{') && !text.trim_end().ends_with('}');
        let what = if is_cut {
            "the file is cut off"
        } else {
            "this is no file of LASER's networks"
        };
        format!("{what} ({fault}); {RETRAIN}")
    })?;
    match head.version {
        Some(version) if version == u64::from(VERSION) => Ok(()),
        Some(version) => Err(of_field("version", version_fault(version))),
        None => {
            let what = format!("missing: this is no file of LASER's networks; {RETRAIN}");
            Err(of_field("version", what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laser::fixtures::networks;

    fn refused(text: &str, field: Option<&str>, words: &[&str]) {
        let message = read_networks(text).expect_err("no fault");
        let found = message
            .strip_prefix("field `")
            .and_then(|rest| rest.split('`').next());
        assert_eq!(found, field, "{message}");
        for word in words {
            assert!(message.contains(word), "{word}: {message}");
        }
        assert!(message.contains("shed-lab laser train"), "{message}");
    }

    #[test]
    fn what_was_written_is_read_back_bit_by_bit() {
        let mut written = networks(3);
        // Neighbors of round numbers, and numbers at the ends of the range.
        let bits = |number: &mut f64, to: f64| *number = to;
        bits(
            &mut written.task.scale,
            f64::from_bits(0.1_f64.to_bits() + 1),
        );
        bits(&mut written.job.layers[0].weights[0][0], f64::MIN_POSITIVE);
        bits(&mut written.job.layers[0].weights[0][1], -f64::MAX);
        bits(&mut written.machine.inputs[0].mean, 5e-324);
        let text = networks_to_text(&written).unwrap();
        assert_eq!(read_networks(&text), Ok(written));
    }

    #[test]
    fn another_version_is_refused() {
        let text = networks_to_text(&networks(1)).unwrap();
        let other = text.replacen("\"version\":1", "\"version\":2", 1);
        refused(&other, Some("version"), &["version 2", "version 1"]);
        // Also if nothing else of it is understood.
        refused("{\"version\":7}", Some("version"), &["version 7"]);
        refused("{}", Some("version"), &["missing"]);
    }

    #[test]
    fn a_file_that_is_cut_off_or_something_else_is_refused() {
        let text = networks_to_text(&networks(1)).unwrap();
        // Within a number, a name, a list: anywhere but where another brace ends.
        let cuts = (0..text.len() - 1).filter(|at| !text[..*at].ends_with('}'));
        for at in cuts {
            refused(&text[..at], None, &["cut off"]);
        }
        refused("[1,2]", None, &["no file of LASER's networks"]);
        refused(&format!("{text}{{}}"), None, &["trailing"]);
        let lacking = text.replacen("\"seed\":1,", "", 1);
        refused(&lacking, None, &["seed"]);
        let text_for_number = text.replacen("\"seed\":1,", "\"seed\":\"x\",", 1);
        refused(&text_for_number, Some("seed"), &["invalid type"]);
        let unknown = text.replacen("\"seed\":1,", "\"seed\":1,\"sead\":1,", 1);
        refused(&unknown, Some("sead"), &["unknown field `sead`"]);
    }

    #[test]
    fn features_must_be_those_of_this_version_in_their_order() {
        let features = |change: &dyn Fn(&mut crate::laser::Regressor)| {
            let mut changed = networks(1);
            change(&mut changed.machine);
            networks_to_text(&changed).unwrap()
        };
        let field = Some("machine.inputs");
        let missing = features(&|network| {
            network.inputs.remove(3);
        });
        refused(&missing, field, &["`cpu_most` missing", "progress_mean"]);
        let order = features(&|network| network.inputs.swap(0, 1));
        refused(&order, field, &["another order"]);
        let unknown = features(&|network| network.inputs[2].name = "bytes".into());
        refused(&unknown, field, &["`cpu_mean` missing", "`bytes` unknown"]);
        let numbers = features(&|network| network.inputs[2].deviation = 0.0);
        refused(&numbers, Some("machine.inputs[2]"), &["above 0"]);
        let width = features(&|network| {
            network.layers[1].weights[0].pop();
        });
        refused(&width, Some("machine.layers[1]"), &["weights"]);
    }
}
