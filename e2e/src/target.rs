//! The target cluster: our own, unless the user names another one and confirms it.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// The cluster that the harness uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The local cluster, which the harness brings up itself.
    Local,
    /// A cluster of the user's.
    Existing(Existing),
}

/// A cluster of the user's, and how images get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    pub kubeconfig: PathBuf,
    /// Shell command; `{}` stands for the image archive, `{name}` for the image's name.
    pub load_image: String,
    /// The part before `/shed:dev` in image names.
    pub image_prefix: String,
    /// A StorageClass that makes ReadWriteMany volumes; only the demo needs one.
    pub storage_class: Option<String>,
    /// Shell command that slows a node, e.g. `docker update --cpus 0.1 {node}`; only the demo wants it.
    pub slow_node: Option<String>,
}

const HOW: &str = "To run on a cluster of your own set all of: SHED_KUBECONFIG=<path>, \
SHED_ALLOW_EXISTING_CLUSTER=yes, SHED_LOAD_IMAGE='<command that brings an image in; {} is the archive>' \
(e.g. 'kind load image-archive {}'). Unset SHED_KUBECONFIG to use the local cluster.";

impl Target {
    /// Reads the choice from the environment. KUBECONFIG is deliberately not looked at: the shell of
    /// a user who runs the tests often points at a cluster that matters.
    pub fn from_env() -> Result<Self> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let lookup = |name| lookup(name).filter(|value| !value.is_empty());
        let allowed = lookup("SHED_ALLOW_EXISTING_CLUSTER");
        let Some(kubeconfig) = lookup("SHED_KUBECONFIG") else {
            if allowed.is_some() {
                bail!(
                    "SHED_ALLOW_EXISTING_CLUSTER is set, but SHED_KUBECONFIG names no cluster. {HOW}"
                );
            }
            return Ok(Self::Local);
        };
        if allowed.as_deref() != Some("yes") {
            bail!(
                "SHED_KUBECONFIG names a cluster, but SHED_ALLOW_EXISTING_CLUSTER isn't `yes`. {HOW}"
            );
        }
        let Some(load_image) = lookup("SHED_LOAD_IMAGE") else {
            bail!("SHED_LOAD_IMAGE is missing. {HOW}");
        };
        Ok(Self::Existing(Existing {
            kubeconfig: kubeconfig.into(),
            load_image,
            image_prefix: lookup("SHED_IMAGE_PREFIX").unwrap_or_else(|| "localhost".to_owned()),
            storage_class: lookup("SHED_STORAGE_CLASS"),
            slow_node: lookup("SHED_SLOW_NODE"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(environment: &[(&str, &str)]) -> Result<Target> {
        let find = |name: &str| environment.iter().find(|(known, _)| *known == name);
        Target::from_lookup(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_users_kubeconfig_is_not_enough() {
        assert_eq!(choose(&[("KUBECONFIG", "/k")]).unwrap(), Target::Local);
        assert!(choose(&[("SHED_KUBECONFIG", "/k")]).is_err());
        assert!(
            choose(&[
                ("SHED_KUBECONFIG", "/k"),
                ("SHED_ALLOW_EXISTING_CLUSTER", "1")
            ])
            .is_err()
        );
        assert!(choose(&[("SHED_ALLOW_EXISTING_CLUSTER", "yes")]).is_err());
    }

    #[test]
    fn a_complete_choice_is_taken() {
        let chosen = choose(&[
            ("SHED_KUBECONFIG", "/k"),
            ("SHED_ALLOW_EXISTING_CLUSTER", "yes"),
            ("SHED_LOAD_IMAGE", "load {}"),
        ]);
        let Target::Existing(existing) = chosen.unwrap() else {
            panic!("not the local cluster")
        };
        assert_eq!(existing.image_prefix, "localhost");
    }
}
