//! The volume that all attempts share: the text in, checkpoints and results out.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, LogParams, PostParams};
use kube::{Api, Client};

use super::NAMESPACE;
use super::manifest::{self, Work};
use super::text::Text;
use crate::cluster::Cluster;
use crate::command::run_quietly;
use crate::wait;

/// How the volume is reached.
pub struct Storage {
    client: Client,
    /// Its folder on this machine, and the program to merge results with; absent if only pods reach it.
    folder: Option<(PathBuf, PathBuf)>,
}

impl Storage {
    /// Makes the claim, and puts the text where the tasks look for it.
    pub async fn set_up(cluster: &Cluster, text: &Text, work: &Work) -> Result<Self> {
        let class = cluster.existing().map(|existing| {
            existing.storage_class.as_deref().context(
                "SHED_STORAGE_CLASS is missing: the demo needs a class that makes ReadWriteMany volumes, \
                 for checkpoints that a clone on another node reads",
            )
        });
        let class = class.transpose()?;
        if class.is_none() {
            Self::remove_volume(cluster).await?;
            Api::<PersistentVolume>::all(cluster.client())
                .create(&PostParams::default(), &manifest::volume(&text.volume)?)
                .await?;
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), NAMESPACE);
        claims
            .create(&PostParams::default(), &manifest::claim(class)?)
            .await?;
        if class.is_none() {
            // The volume controller may take a quarter of a minute: none of the three runs shall
            // start with that.
            let is_bound = |claim: &PersistentVolumeClaim| {
                let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
                phase == Some("Bound")
            };
            let patience = Duration::from_secs(60);
            wait::for_object(
                &claims,
                manifest::CLAIM,
                "the claim to be bound",
                patience,
                is_bound,
            )
            .await?;
            for folder in ["state", "out"] {
                empty_for_everybody(&text.volume.join(folder))?;
            }
            return Ok(Self {
                client: cluster.client(),
                folder: Some((text.volume.clone(), text.program.clone())),
            });
        }
        let storage = Self {
            client: cluster.client(),
            folder: None,
        };
        let target = format!("-out=/data/input/{}", text.name);
        storage
            .helper(work, "copy", &[format!("-input=/{}", text.name), target])
            .await?;
        Ok(storage)
    }

    /// The sum of the results that the tasks of a job published.
    pub async fn merged(&self, job: &str, work: &Work) -> Result<String> {
        let tasks = format!("-tasks={}", work.tasks);
        let Some((volume, program)) = &self.folder else {
            let folder = format!("-out=/data/out/{job}");
            return self.helper(work, "merge", &[folder, tasks]).await;
        };
        let folder = format!("-out={}", volume.join("out").join(job).display());
        run_quietly(program, &["merge".to_owned(), folder, tasks]).await
    }

    /// Runs the word count next to the volume and returns what it printed.
    async fn helper(&self, work: &Work, command: &str, options: &[String]) -> Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let arguments = [&[command.to_owned()], options].concat();
        pods.create(&PostParams::default(), &work.helper(command, &arguments)?)
            .await?;
        let what = format!("pod {command} beside the volume");
        let patience = Duration::from_secs(300);
        let pod = wait::for_object(&pods, command, &what, patience, wait::is_over).await?;
        let printed = pods.logs(command, &LogParams::default()).await?;
        if wait::phase(&pod) == "Failed" {
            bail!("{what} failed: {printed}");
        }
        pods.delete(command, &DeleteParams::default()).await?;
        wait::for_absence(&pods, command, Duration::from_secs(60)).await?;
        Ok(printed.trim_end().to_owned())
    }

    /// Takes the local cluster's volume away, and what was written to it.
    pub async fn remove_volume(cluster: &Cluster) -> Result<()> {
        let volumes: Api<PersistentVolume> = Api::all(cluster.client());
        if cluster.existing().is_some() || volumes.get_opt(NAMESPACE).await?.is_none() {
            return Ok(());
        }
        volumes.delete(NAMESPACE, &DeleteParams::default()).await?;
        wait::for_absence(&volumes, NAMESPACE, Duration::from_secs(60)).await
    }
}

/// Pods run as a user that this machine does not have, so every user may write here.
fn empty_for_everybody(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))?;
    Ok(())
}
