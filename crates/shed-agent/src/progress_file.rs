//! Reads the file that the task writes. The task owns that path and may put anything there; it
//! must cost the agent neither time nor memory.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::report::CONTENT_BYTES_MAX;
use crate::wire::FileContent;

/// Reads at most one byte more than a report may have.
pub(crate) fn read(path: &Path) -> FileContent {
    match read_regular(path) {
        Ok(Some((bytes, age))) => FileContent::Bytes(bytes, age),
        Ok(None) => FileContent::Unreadable,
        Err(error) if error.kind() == io::ErrorKind::NotFound => FileContent::Missing,
        Err(_) => FileContent::Unreadable,
    }
}

/// The content and the time since it was written; `None` if the file is not a regular one.
fn read_regular(path: &Path) -> io::Result<Option<(Vec<u8>, Duration)>> {
    // NONBLOCK: opening a FIFO waits for a writer. NOFOLLOW: a link would show files of the
    // agent's own container. The type is asked of the open file, which cannot be swapped.
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    // Before the content is read: a write in between makes it newer, never older, than is said.
    // A date in the future, which a task may set, does not count.
    let age = SystemTime::now().duration_since(metadata.modified()?);
    let mut bytes = Vec::new();
    file.take(CONTENT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(Some((bytes, age.unwrap_or_default())))
}

/// Lets a task with any user id create the file. An emptyDir is so already; elsewhere the agent
/// may lack the right, and the task need not lack it, hence only a warning.
pub(crate) fn open_folder(path: &Path) {
    let Some(folder) = path.parent() else { return };
    if let Err(error) = make_writable(folder) {
        tracing::warn!(folder = %folder.display(), %error, "cannot open the folder to every user");
    }
}

fn make_writable(folder: &Path) -> io::Result<()> {
    const ALL: u32 = 0o777;
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & ALL == ALL {
        return Ok(());
    }
    // Higher bits are kept: the sticky bit of a shared folder must stay.
    fs::set_permissions(folder, Permissions::from_mode(mode | ALL))
}
