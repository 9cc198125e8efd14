//! The word count's image.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::text::Text;
use crate::cluster::{Cluster, build_image};
use crate::command::{cache_folder, repository, run_quietly};

/// Builds the image if anything in it changed, and returns its archive. On a cluster whose volumes
/// can't be reached from here the text comes along.
pub async fn build(cluster: &Cluster, text: &Text) -> Result<PathBuf> {
    let name = cluster.image_name("wordcount");
    let folder = cache_folder()?.join("demo/image");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let contents = folder.join("dist");
    std::fs::create_dir_all(&contents)?;
    std::fs::copy(&text.program, contents.join("wordcount"))?;
    std::fs::copy(
        repository().join("examples/wordcount/Dockerfile"),
        folder.join("Dockerfile"),
    )?;
    if cluster.existing().is_some() {
        std::fs::copy(text.path(), contents.join(&text.name))?;
    }
    let archive = cache_folder()?.join("images/wordcount-dev.tar");
    let made_of = format!("{name}\n{}", sums(&folder).await?);
    let note = archive.with_extension("source");
    if archive.exists() && std::fs::read_to_string(&note).is_ok_and(|before| before == made_of) {
        return Ok(archive);
    }
    build_image(&folder, &name, &archive, &["--target", "prebuilt"]).await?;
    std::fs::write(&note, &made_of)?;
    Ok(archive)
}

async fn sums(folder: &Path) -> Result<String> {
    let mut files: Vec<_> = std::fs::read_dir(folder.join("dist"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.push(folder.join("Dockerfile"));
    files.sort();
    run_quietly("sha256sum", &files).await
}
