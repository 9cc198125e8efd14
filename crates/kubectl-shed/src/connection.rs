//! The connection to the cluster: which kubeconfig, context and namespaces.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Without a connection after this time the apiserver counts as unreachable.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Without a byte for this time the apiserver counts as unreachable.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// Options that every verb has.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct Connection {
    /// Path of the kubeconfig. Absent: the files of KUBECONFIG, or ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Absent: the current one.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of the job. Absent: the context's namespace.
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Namespace in which shed's operator runs.
    #[arg(
        long,
        global = true,
        env = "SHED_NAMESPACE",
        default_value = "shed-system",
        value_name = "NAMESPACE"
    )]
    pub shed_namespace: String,
    /// Name of the Lease that the leading operator holds.
    #[arg(
        long,
        global = true,
        env = "SHED_LEASE_NAME",
        default_value = "shed",
        value_name = "NAME"
    )]
    pub lease_name: String,
}

pub struct Session {
    pub client: Client,
    /// The namespace that the user asks about.
    pub namespace: String,
    /// The options that it was opened with.
    pub options: Connection,
}

impl Connection {
    /// Reads the kubeconfig and builds a client. Nothing is sent yet.
    pub async fn open(&self) -> anyhow::Result<Session> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_PATIENCE);
        config.read_timeout = Some(READ_PATIENCE);
        let namespace = self.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).context("cannot use the kubeconfig")?;
        let options = self.clone();
        Ok(Session {
            client,
            namespace,
            options,
        })
    }

    async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        if let Some(path) = &self.kubeconfig {
            let named = || format!("--kubeconfig {}", path.display());
            let read = Kubeconfig::read_from(path).with_context(named)?;
            let config = Config::from_custom_kubeconfig(read, &options).await;
            return config.with_context(named);
        }
        match Config::from_kubeconfig(&options).await {
            Ok(config) => Ok(config),
            // Within a pod there is no kubeconfig, and no context to choose.
            Err(error) => match (self.context.is_none(), Config::incluster()) {
                (true, Ok(config)) => Ok(config),
                _ => Err(error).context("no usable kubeconfig: set KUBECONFIG or --kubeconfig"),
            },
        }
    }
}
