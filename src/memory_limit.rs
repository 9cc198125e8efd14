//! The memory limit of the operator's container, which the kernel shows in the files of its cgroup.

use std::path::Path;

/// Where a container sees its own cgroup: version 2, then version 1.
const FILES: [&str; 2] = ["memory.max", "memory/memory.limit_in_bytes"];
/// Version 1 shows no limit as a number near the largest one.
const UNLIMITED: f64 = (1_u64 << 60) as f64;

/// The limit of this process in bytes; infinite without one.
pub fn own() -> f64 {
    in_folder(Path::new("/sys/fs/cgroup"))
}

fn in_folder(folder: &Path) -> f64 {
    let texts = FILES.map(|file| std::fs::read_to_string(folder.join(file)));
    let text = texts.into_iter().find_map(Result::ok).unwrap_or_default();
    // "max" is no number.
    let limit = text.trim().parse::<u64>().map(|bytes| bytes as f64);
    limit
        .ok()
        .filter(|bytes| *bytes < UNLIMITED)
        .unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit where the file has this text.
    fn shown(file: &str, text: &str) -> f64 {
        let name = format!("shed-memory-limit-{}-{}", std::process::id(), text.len());
        let folder = std::env::temp_dir().join(name);
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        let limit = in_folder(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        limit
    }

    #[test]
    fn a_limit_is_read_from_either_version_of_cgroups() {
        assert_eq!(shown(FILES[0], "536870912\n"), 536_870_912.0);
        assert_eq!(shown(FILES[1], "268435456\n"), 268_435_456.0);
    }

    #[test]
    fn without_a_limit_it_is_infinite() {
        assert_eq!(shown(FILES[0], "max\n"), f64::INFINITY);
        assert_eq!(shown(FILES[1], "9223372036854771712\n"), f64::INFINITY);
        assert_eq!(in_folder(Path::new("/nowhere")), f64::INFINITY);
    }
}
