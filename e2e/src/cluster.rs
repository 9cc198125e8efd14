//! The cluster that tests and demo run on: bringing it up, bringing images in, installing the operator.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use shed::api::DeadlineJob;

use crate::FIELD_MANAGER;
use crate::command::{cache_folder, repository, run, run_quietly};
use crate::manifests;
use crate::target::{Existing, Target};
use crate::wait;

/// Where the harness installs the operator, and under which release name.
pub const OPERATOR_NAMESPACE: &str = "shed-system";
/// The Helm release.
pub const RELEASE: &str = "shed";

/// The label that names an object's manager.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Marks nodes that kwok pretends to run.
const KWOK_NODE: &str = "kwok.x-k8s.io/node";

/// Where programs look for a proxy.
pub(crate) const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// The kind of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Kubelets: containers are real.
    Real,
    /// kwok: the control plane is real, pods are simulated; images and progress don't exist.
    Kwok,
}

/// A cluster that answers.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    kubeconfig: PathBuf,
    nodes: Nodes,
    target: Target,
}

/// The local cluster's command.
fn tool() -> PathBuf {
    repository().join("e2e/cluster/cluster")
}

/// Starts the local cluster, or the components of it that do not run.
pub(crate) async fn start_missing() -> Result<()> {
    let up = run(tool(), &["up"]).await;
    up.map(drop).context("bringing the local cluster up")
}

impl Cluster {
    /// Brings the local cluster up, or connects to the one that the user named (see [`Target`]).
    pub async fn bring_up() -> Result<Self> {
        let target = Target::from_env()?;
        let kubeconfig = match &target {
            Target::Local => {
                start_missing().await?;
                PathBuf::from(run(tool(), &["kubeconfig"]).await?)
            }
            Target::Existing(existing) => existing.kubeconfig.clone(),
        };
        Self::connect(target, kubeconfig).await
    }

    async fn connect(target: Target, kubeconfig: PathBuf) -> Result<Self> {
        let read = Kubeconfig::read_from(&kubeconfig)
            .with_context(|| format!("reading the kubeconfig {}", kubeconfig.display()))?;
        let mut config =
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        if target == Target::Local {
            // A proxy of the user's shell doesn't lead to this machine.
            config.proxy_url = None;
        }
        let client = Client::try_from(config)?;
        let nodes = Api::<Node>::all(client.clone())
            .list(&ListParams::default())
            .await
            .with_context(|| {
                format!(
                    "asking the cluster of {} for its nodes",
                    kubeconfig.display()
                )
            })?
            .items;
        if nodes.is_empty() {
            bail!("the cluster of {} has no nodes", kubeconfig.display());
        }
        let fake = nodes
            .iter()
            .all(|node| node.annotations().contains_key(KWOK_NODE));
        let nodes = if fake { Nodes::Kwok } else { Nodes::Real };
        Ok(Self {
            client,
            kubeconfig,
            nodes,
            target,
        })
    }

    /// A client with the kubeconfig's rights (an administrator's on the local cluster).
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The kubeconfig, for programs that want a file.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Whether pods are real.
    pub fn nodes(&self) -> Nodes {
        self.nodes
    }

    /// The user's cluster, if it isn't ours.
    pub fn existing(&self) -> Option<&Existing> {
        match &self.target {
            Target::Local => None,
            Target::Existing(existing) => Some(existing),
        }
    }

    /// Names of the nodes that take pods, sorted.
    pub async fn node_names(&self) -> Result<Vec<String>> {
        let nodes = Api::<Node>::all(self.client())
            .list(&ListParams::default())
            .await?;
        let mut names: Vec<_> = nodes
            .items
            .iter()
            .filter(|node| takes_pods(node))
            .map(ResourceExt::name_any)
            .collect();
        names.sort();
        Ok(names)
    }

    /// Caps a node's CPU at a share of what it would have; 1 lifts the cap.
    pub async fn slow(&self, node: &str, share: f64) -> Result<()> {
        if self.existing().is_some() {
            bail!("slowing {node}: only nodes of the local cluster can be slowed");
        }
        run_quietly(tool(), &["slow", node, &share.to_string()])
            .await
            .map(drop)
    }

    /// The name that an image of ours has in this cluster, e.g. for `shed`.
    pub fn image_name(&self, image: &str) -> String {
        let prefix = self
            .existing()
            .map_or("localhost", |existing| existing.image_prefix.as_str());
        format!("{prefix}/{image}:dev")
    }

    /// Brings an image archive to every node.
    pub async fn load_image(&self, archive: &Path, image: &str) -> Result<()> {
        let Some(existing) = self.existing() else {
            return run_quietly(tool(), &[Path::new("load"), archive])
                .await
                .map(drop);
        };
        let archive = format!("'{}'", archive.display());
        let line = existing
            .load_image
            .replace("{name}", &self.image_name(image))
            .replace("{}", &archive);
        run("sh", &["-c", &line])
            .await
            .context("SHED_LOAD_IMAGE")
            .map(drop)
    }

    /// Builds the operator's image, brings it in, and installs or upgrades the chart with these
    /// values (JSON) on top; returns when the operator is available and runs this image. Where nodes are
    /// simulated no image runs: see [`crate::host_operator::HostOperator`].
    pub async fn install_operator(&self, values: &[(&str, &str)]) -> Result<()> {
        let digest = self.load_operator().await?;
        self.install_chart(&digest, values).await?;
        self.rolled_out().await
    }

    /// Builds the operator's image and brings it in; returns the digest of its archive.
    pub async fn load_operator(&self) -> Result<String> {
        let archive = build_operator_image().await?;
        self.load_image(&archive, "shed").await?;
        digest(&archive).await
    }

    /// Installs shed on the local cluster from the CRD and `manifests/install.yaml`, for which helm need not be built;
    /// returns when the operator is available. `digest` as for [`Self::install_chart`], `env` are variables
    /// of the operator.
    pub async fn install_manifests(&self, digest: &str, env: &[(&str, String)]) -> Result<()> {
        let text = std::fs::read_to_string(repository().join("manifests/install.yaml"))?;
        let text = manifests::adjusted(&text, &self.image_name("shed"), digest, env)?;
        let file = cache_folder()?.join("demo/install.yaml");
        std::fs::create_dir_all(file.parent().context("the cache has a folder")?)?;
        std::fs::write(&file, text)?;
        let files = [repository().join("crds/deadlinejobs.yaml"), file];
        self.remove_helms_deployment().await?;
        let kube = PathBuf::from(run(tool(), &["tool", "kube"]).await?);
        let apply = ["kubectl", "apply", "--server-side", "--force-conflicts"];
        let mut arguments: Vec<&std::ffi::OsStr> = apply.iter().map(std::ffi::OsStr::new).collect();
        arguments.extend(["--kubeconfig".as_ref(), self.kubeconfig.as_os_str()]);
        for file in &files {
            arguments.extend(["--filename".as_ref(), file.as_os_str()]);
        }
        run_quietly(kube, &arguments)
            .await
            .context("applying manifests/install.yaml")?;
        Ok(())
    }

    /// What a chart's values added to it would stay in an object that is applied over it.
    async fn remove_helms_deployment(&self) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client(), OPERATOR_NAMESPACE);
        let found = deployments.get_opt(RELEASE).await?;
        if found.is_some_and(|found| found.labels().contains_key(MANAGED_BY)) {
            let foreground = DeleteParams::foreground();
            deployments.delete(RELEASE, &foreground).await?;
            wait::for_absence(&deployments, RELEASE, Duration::from_secs(60)).await?;
        }
        Ok(())
    }

    /// Installs or upgrades the chart. The image's name stays the same from build to build: `digest`
    /// changes the pod, or an upgrade would leave the old program running.
    pub async fn install_chart(&self, digest: &str, values: &[(&str, &str)]) -> Result<()> {
        let helm = run(tool(), &["tool", "helm"])
            .await
            .context("building helm")?;
        let name = self.image_name("shed");
        let (repository_part, tag) = name
            .rsplit_once(':')
            .context("an image name without a tag")?;
        let mut arguments: Vec<String> = Vec::new();
        if self.target == Target::Local {
            // A proxy of the user's shell doesn't lead to this machine.
            arguments.extend(PROXY_VARIABLES.iter().map(|name| format!("--unset={name}")));
        }
        let kubeconfig = self.kubeconfig.display().to_string();
        let upgrade = [&helm, "upgrade", "--install", RELEASE, "charts/shed"];
        let place = ["--namespace", OPERATOR_NAMESPACE, "--create-namespace"];
        let words = [&upgrade[..], &place, &["--kubeconfig", &kubeconfig]].concat();
        arguments.extend(words.into_iter().map(str::to_owned));
        if self.target == Target::Local {
            // Left by hand or by an interrupted run; in a user's own cluster it belongs to the user.
            arguments.push("--take-ownership".to_owned());
        }
        let image = [
            ("image.repository", repository_part),
            ("image.tag", tag),
            ("image.pullPolicy", "IfNotPresent"),
            (r"podAnnotations.shed\.dev/e2e-image", digest),
        ];
        for (key, value) in &image {
            arguments.extend(["--set-string".to_owned(), format!("{key}={value}")]);
        }
        for (key, value) in values {
            arguments.extend(["--set-json".to_owned(), format!("{key}={value}")]);
        }
        run_quietly("env", &arguments)
            .await
            .context("installing the chart")?;
        Ok(())
    }

    /// Waits until the operator's Deployment is available and its old pod is gone.
    pub async fn rolled_out(&self) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client(), OPERATOR_NAMESPACE);
        let ours = ListParams::default().labels(&format!("app.kubernetes.io/instance={RELEASE}"));
        let found = deployments.list(&ours).await?.items;
        ensure!(
            !found.is_empty(),
            "the chart installed no Deployment labelled app.kubernetes.io/instance={RELEASE}"
        );
        for name in found.iter().map(ResourceExt::name_any) {
            let what = format!("the roll-out of {OPERATOR_NAMESPACE}/{name}");
            let patience = Duration::from_secs(120);
            wait::for_object(&deployments, &name, &what, patience, is_rolled_out).await?;
        }
        Ok(())
    }

    /// An empty namespace of this name: what an earlier run left is deleted first.
    pub async fn fresh_namespace(&self, name: &str) -> Result<()> {
        self.delete_namespace(name).await?;
        let labels = json!({MANAGED_BY: FIELD_MANAGER});
        let namespace = json!({"metadata": {"name": name, "labels": labels}});
        let namespace: Namespace = serde_json::from_value(namespace)?;
        let namespaces = Api::all(self.client());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(())
    }

    /// Deletes a namespace that this harness made, and waits until it is gone.
    pub async fn delete_namespace(&self, name: &str) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let Some(found) = namespaces.get_opt(name).await? else {
            return Ok(());
        };
        // On the user's cluster a namespace of that name may belong to any user.
        let manager = found.labels().get(MANAGED_BY);
        ensure!(
            manager.is_some_and(|manager| manager == FIELD_MANAGER),
            "namespace {name} exists and isn't ours: it will not be touched"
        );
        self.delete_work(name).await?;
        namespaces.delete(name, &DeleteParams::default()).await?;
        wait::for_absence(&namespaces, name, Duration::from_secs(120)).await
    }

    /// Deletes what may have finalizers or run: a namespace that still holds some when it is deleted
    /// is looked at again only seconds later.
    async fn delete_work(&self, namespace: &str) -> Result<()> {
        let (all, background) = (ListParams::default(), DeleteParams::background());
        let jobs: Api<DeadlineJob> = Api::namespaced(self.client(), namespace);
        let plain: Api<Job> = Api::namespaced(self.client(), namespace);
        let pods: Api<Pod> = Api::namespaced(self.client(), namespace);
        match jobs.delete_collection(&background, &all).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {} // the chart isn't installed
            done => drop(done?),
        }
        plain.delete_collection(&background, &all).await?;
        pods.delete_collection(&background, &all).await?;
        let patience = Duration::from_secs(60);
        wait::for_pods(&pods, "", "pods to go", patience, <[Pod]>::is_empty).await?;
        Ok(())
    }
}

/// Builds the operator's image and returns its archive; quick if nothing changed.
pub async fn build_operator_image() -> Result<PathBuf> {
    let printed = run(repository().join("e2e/image.sh"), &[] as &[&str])
        .await
        .context("building the operator's image")?;
    last_line_as_path(&printed)
}

/// Builds an image from a folder with a Dockerfile into an archive; `more` goes to `buildah build`.
pub async fn build_image(context: &Path, name: &str, archive: &Path, more: &[&str]) -> Result<()> {
    let script = repository().join("e2e/build-image.sh");
    let mut arguments = vec![context.as_os_str(), name.as_ref(), archive.as_os_str()];
    arguments.extend(more.iter().map(std::ffi::OsStr::new));
    run_quietly(script, &arguments)
        .await
        .with_context(|| format!("building the image {name}"))
        .map(drop)
}

async fn digest(archive: &Path) -> Result<String> {
    let sum = run_quietly("sha256sum", &[archive]).await?;
    Ok(sum.split_whitespace().next().unwrap_or_default().to_owned())
}

fn last_line_as_path(printed: &str) -> Result<PathBuf> {
    let line = printed
        .lines()
        .last()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    Ok(PathBuf::from(
        line.context("the image build printed no path")?,
    ))
}

fn takes_pods(node: &Node) -> bool {
    let Some(spec) = &node.spec else { return true };
    let closed = |effect: &str| effect == "NoSchedule" || effect == "NoExecute";
    let tainted = spec
        .taints
        .iter()
        .flatten()
        .any(|taint| closed(&taint.effect) && taint.key != KWOK_NODE);
    !spec.unschedulable.unwrap_or(false) && !tainted
}

fn is_rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    deployment.status.as_ref().is_some_and(|status| {
        status.observed_generation == deployment.metadata.generation
            && status.updated_replicas == Some(wanted)
            && status.available_replicas == Some(wanted)
            // With the old replica still there two operators would be at work.
            && status.replicas == Some(wanted)
    })
}
