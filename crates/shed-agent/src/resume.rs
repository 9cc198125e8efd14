//! Hands the resume point to the task as files that are complete before the task starts and
//! that any user id and a plain shell can read.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::Resume;
use crate::report::Report;

/// The agent and the task seldom run as the same user.
const MODE: u32 = 0o644;

/// The resume point for the agent's environment variable. The kubelet expands `$(NAME)` in the
/// value of a variable, and a checkpoint may hold any text; `\u0024` is the same JSON and has
/// no dollar sign.
pub fn to_env_value(point: &Report) -> serde_json::Result<String> {
    Ok(serde_json::to_string(point)?.replace('$', "\\u0024"))
}

/// Where the bare text of the checkpoint goes, for programs that do not read JSON.
pub fn checkpoint_file(resume_file: &Path) -> PathBuf {
    with_suffix(resume_file, ".checkpoint")
}

/// Writes the resume file and, with a checkpoint, the checkpoint file next to it. The resume file
/// comes last: where it exists, both are complete. One that exists is left alone, since it is
/// this attempt's own from before a restart of the container.
pub fn write(resume: &Resume) -> anyhow::Result<()> {
    let Resume { file, point } = resume;
    // The link itself counts, not its target: a dangling one is nothing to write through.
    if fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    if let Some(checkpoint) = point.checkpoint() {
        let path = checkpoint_file(file);
        write_atomically(&path, checkpoint.as_bytes())
            .with_context(|| format!("write {}", path.display()))?;
    }
    let mut json = serde_json::to_vec(point).context("write the resume point as JSON")?;
    json.push(b'\n');
    write_atomically(file, &json).with_context(|| format!("write {}", file.display()))
}

pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = with_suffix(path, ".tmp");
    // One left by a killed agent is removed; `create_new` then follows no link put there since.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE);
    let mut file = options.open(&temporary)?;
    file.write_all(content)?;
    // Again, because the mode given on opening is cut by the umask.
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::parse_report;

    #[test]
    fn a_checkpoint_with_a_dollar_sign_survives_the_environment() {
        let point = Report::new(0.4, Some("$(SHED_ATTEMPT_UID) $$ \"\\".into())).unwrap();
        let value = to_env_value(&point).unwrap();
        assert!(!value.contains('$'));
        assert_eq!(parse_report(value.as_bytes()), Ok(Some(point)));
    }

    #[test]
    fn the_longest_point_fits_into_its_variable() {
        for filler in ["\u{1}", "$", "\"", "x"] {
            let point = Report::new(1.0 / 3.0, Some(filler.repeat(256))).unwrap();
            let value = to_env_value(&point).unwrap();
            assert!(parse_report(value.as_bytes()).unwrap().is_some());
        }
    }
}
