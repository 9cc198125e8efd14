//! `kubectl shed stop-clones` and `resume-clones`: the annotation of a Namespace that stops new clones.

use std::process::ExitCode;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::Patch;
use serde_json::json;
use shed::api::{ANNOTATION_CLONES, CLONES_STOP};

use crate::access::{self, Access};
use crate::connection::Connection;
use crate::terminal;

/// Help of `stop-clones`.
pub const STOP_EXAMPLES: &str = "\
Examples:
  # Start no new clones of the jobs of a namespace
  kubectl shed stop-clones -n team

  # Start no new clones in the cluster; --dry-run only prints what would change
  kubectl shed stop-clones --all --dry-run

Live clones, first attempts and retries continue.";

/// Help of `resume-clones`.
pub const RESUME_EXAMPLES: &str = "\
Examples:
  # Allow clones of the jobs of a namespace again
  kubectl shed resume-clones -n team

  # Take back `stop-clones --all`
  kubectl shed resume-clones --all";

/// The namespaces of a change.
#[derive(Debug, clap::Args)]
pub struct Scope {
    /// The whole cluster, by the annotation of shed's own namespace.
    #[arg(long)]
    all: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// What becomes of the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Stop,
    Resume,
}

/// Sets the annotation, or removes it.
pub async fn run(wish: Wish, scope: Scope, connection: &Connection) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !scope.all || connection.namespace.is_none(),
        "--all is about the whole cluster, and -n about one namespace: use one of them"
    );
    let session = connection.open().await?;
    let api: Api<Namespace> = Api::all(session.client.clone());
    let own = connection.shed_namespace.as_str();
    let name = if scope.all { own } else { &session.namespace };
    let found = annotation(&api, name).await?;
    let value = (wish == Wish::Stop).then_some(CLONES_STOP);
    if found.as_deref() != value && !scope.dry_run {
        write(&api, name, value).await?;
    }
    let whole = name == own;
    terminal::print(&words(wish, name, whole, found.as_deref(), scope.dry_run))?;
    if wish == Wish::Resume
        && !whole
        && let Ok(Some(value)) = annotation(&api, own).await
        && value == CLONES_STOP
    {
        terminal::print(&format!(
            "clones stay stopped in the whole cluster by the annotation of namespace {own}: \
             kubectl shed resume-clones --all\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What was done or would be done.
fn words(wish: Wish, name: &str, is_whole: bool, found: Option<&str>, is_dry: bool) -> String {
    let jobs = match is_whole {
        true => "all jobs of the cluster".to_owned(),
        false => format!("the jobs of namespace {name}"),
    };
    let prefix = if is_dry {
        "dry run: would annotate"
    } else {
        "annotated"
    };
    match (wish, found) {
        (Wish::Stop, Some(CLONES_STOP)) => format!(
            "nothing to do: namespace {name} already has {ANNOTATION_CLONES}={CLONES_STOP}, and {jobs} get no new clones\n"
        ),
        (Wish::Stop, _) => format!(
            "{prefix} namespace {name} with {ANNOTATION_CLONES}={CLONES_STOP}: {jobs} get no new clones; live clones \
             continue\n"
        ),
        (Wish::Resume, None) => {
            format!("nothing to do: namespace {name} has no annotation {ANNOTATION_CLONES}\n")
        }
        (Wish::Resume, Some(value)) => {
            let prefix = if is_dry {
                "dry run: would remove"
            } else {
                "removed"
            };
            format!(
                "{prefix} {ANNOTATION_CLONES}={value} from namespace {name}: {jobs} may get clones again\n"
            )
        }
    }
}

async fn annotation(api: &Api<Namespace>, name: &str) -> anyhow::Result<Option<String>> {
    let found = api.get_metadata_opt(name).await;
    let found = found.map_err(|error| access("get", name).explain(error))?;
    let found = found.with_context(|| {
        format!("no namespace {name}: check -n, or --shed-namespace with --all")
    })?;
    let annotations = found.metadata.annotations;
    Ok(annotations.unwrap_or_default().remove(ANNOTATION_CLONES))
}

async fn write(api: &Api<Namespace>, name: &str, value: Option<&str>) -> anyhow::Result<()> {
    let patch = json!({ "metadata": { "annotations": { ANNOTATION_CLONES: value } } });
    let patch = Patch::Merge(&patch);
    let written = api.patch_metadata(name, &access::writer(), &patch).await;
    written
        .map(drop)
        .map_err(|error| access("patch", name).explain(error))
}

fn access<'a>(verb: &'static str, name: &'a str) -> Access<'a> {
    Access::new(verb, "namespaces", Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_names_the_namespace_and_its_effect() {
        let stop = |found, dry| words(Wish::Stop, "team", false, found, dry);
        assert_eq!(
            stop(None, false),
            "annotated namespace team with shed.dev/clones=stop: the jobs of namespace team get no new clones; live \
             clones continue\n"
        );
        assert!(
            stop(Some("halt"), true).starts_with("dry run: would annotate namespace team with")
        );
        assert!(stop(Some("stop"), false).starts_with("nothing to do: namespace team already has"));
        let resume = |found, dry| words(Wish::Resume, "shed-system", true, found, dry);
        assert_eq!(
            resume(Some("stop"), false),
            "removed shed.dev/clones=stop from namespace shed-system: all jobs of the cluster may get clones again\n"
        );
        assert!(resume(Some("stop"), true).starts_with("dry run: would remove"));
        assert_eq!(
            resume(None, false),
            "nothing to do: namespace shed-system has no annotation shed.dev/clones\n"
        );
    }
}
