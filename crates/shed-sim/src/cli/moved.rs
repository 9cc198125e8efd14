//! Sub-commands that moved to `shed-lab`.

use std::ffi::OsString;

use super::CliError;

const MOVED: [&str; 7] = [
    "bound",
    "calibrate",
    "fit",
    "laser",
    "league",
    "report",
    "reproduce",
];

/// Reports the program that has the sub-command.
pub(super) fn refuse(args: &[OsString]) -> Result<(), CliError> {
    let name = args.get(1).and_then(|name| name.to_str());
    match name.filter(|name| MOVED.contains(name)) {
        Some(name) => Err(CliError::Usage(format!(
            "`{name}` is a sub-command of shed-lab: shed-lab {name} …"
        ))),
        None => Ok(()),
    }
}
