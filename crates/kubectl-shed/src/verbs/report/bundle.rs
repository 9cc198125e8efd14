//! The files of a support bundle, as a folder or as one compressed archive.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Name of the folder within the archive.
const ROOT: &str = "shed-report";

/// Files by their path.
#[derive(Debug, Default)]
pub struct Bundle(BTreeMap<String, String>);

/// Refuses to overwrite anything.
pub fn check_target(path: &Path) -> anyhow::Result<()> {
    ensure!(
        !path.exists(),
        "{} exists: choose another path with -o, or remove it",
        path.display()
    );
    Ok(())
}

impl Bundle {
    pub fn add(&mut self, path: &str, text: String) {
        self.0.insert(path.to_owned(), text);
    }

    pub fn map(&mut self, change: impl Fn(&str) -> String) {
        self.0.values_mut().for_each(|text| *text = change(text));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes an archive if the path ends in `.tar.gz` or `.tgz`, and a folder otherwise.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let name = path.to_string_lossy();
        if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
            return self.write_archive(path);
        }
        for (file, text) in &self.0 {
            let file = path.join(file);
            let folder = file.parent().unwrap_or(path);
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            fs::write(&file, text).with_context(|| file.display().to_string())?;
        }
        Ok(())
    }

    fn write_archive(&self, path: &Path) -> anyhow::Result<()> {
        let file = File::create_new(path)?;
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        for (file, text) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, format!("{ROOT}/{file}"), text.as_bytes())?;
        }
        archive.into_inner()?.finish()?.sync_all()?;
        Ok(())
    }
}
