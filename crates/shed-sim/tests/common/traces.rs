//! Traces that are not in this repository. shed-lab's tests share this file.

use std::path::{Path, PathBuf};

/// The folder of the traces.
pub fn folder() -> PathBuf {
    std::env::var_os("SHED_TRACES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"),
        PathBuf::from,
    )
}

/// A file of the traces; prints a message if it is absent.
pub fn shared_trace(name: &str) -> Option<PathBuf> {
    let path = folder().join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!(
        "left out: {} is not there (SHED_TRACES names the folder of traces)",
        path.display()
    );
    None
}
