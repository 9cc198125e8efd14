//! Puts the operator together: settings → shared state → watches, planner, reconcilers, server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::runtime::events::{Recorder, Reporter};
use kube::{Api, Client, Config};
use shed_core::policy::Policy;
use tokio::sync::mpsc;

use crate::args::OperatorArgs;
use crate::board::Board;
use crate::context::{Context, Memos};
use crate::controller::build::{AgentSettings, ClonePriority};
use crate::fence::{Fence, FenceTable};
use crate::metrics::Metrics;
use crate::progress::ProgressTable;
use crate::stores::Stores;
use crate::{controller, fence, planner, progress, recording, restored, server};

/// A call that takes longer has failed; watches end before that by themselves.
const CALL_TIMEOUT: Duration = Duration::from_secs(65);

/// Runs the operator until it is told to stop.
///
/// # Errors
/// If a setting is wrong, the apiserver can't be configured, or the server can't listen.
pub async fn run(args: OperatorArgs) -> anyhow::Result<()> {
    let policy = policy(&args)?;
    let mut config = Config::infer()
        .await
        .context("no cluster: neither a service account nor a kubeconfig was found")?;
    config.read_timeout = Some(CALL_TIMEOUT);
    let client = Client::try_from(config)?;
    let key = Arc::new(fence::load_key(&client, &args.signing_secret).await?);
    let clone_priority = clone_priority(&client, args.clone_priority_class.clone()).await;
    let (touched, touched_jobs) = mpsc::unbounded_channel();
    let stores = Stores::start(&client, touched.clone());
    let metrics = Arc::new(Metrics::new());
    let context = Arc::new(Context {
        recorder: Recorder::new(client.clone(), reporter()),
        client,
        stores: Arc::clone(&stores),
        progress: Arc::new(ProgressTable::default()),
        fence: Arc::new(FenceTable::default()),
        board: Board::default(),
        agent: AgentSettings {
            image: args.agent_image.clone(),
            pull_policy: args.agent_pull_policy.clone(),
            pull_secret: args
                .agent_pull_secret
                .clone()
                .filter(|name| !name.is_empty()),
            operator_key: key.public(),
        },
        clone_priority,
        memos: Memos::default(),
        recording: recording::start(&args, &policy, &metrics)?,
        metrics,
    });
    tracing::info!(
        ?policy,
        version = env!("CARGO_PKG_VERSION"),
        "operator starts"
    );
    let fence = Fence {
        table: Arc::clone(&context.fence),
        stores: Arc::clone(&stores),
        metrics: Arc::clone(&context.metrics),
        key: Arc::clone(&key),
        touched: touched.clone(),
    };
    let poller = progress::run(
        Arc::clone(&context.progress),
        stores,
        Arc::clone(&context.metrics),
        key,
    );
    let ended = tokio::select! {
        result = server::run(args.http_address, Arc::clone(&context)) => result,
        () = fence::run(fence) => anyhow::bail!("the fence's poller ended"),
        () = poller => anyhow::bail!("the progress poller ended"),
        () = planner::run(Arc::clone(&context), policy, touched) => anyhow::bail!("the planner ended"),
        () = reconcile(Arc::clone(&context), touched_jobs) => anyhow::bail!("the reconciler ended"),
        () = restored::noticed(Arc::clone(&context)) => {
            anyhow::bail!("resourceVersions went back: the apiserver's store was restored; starting anew")
        }
        () = told_to_stop() => Ok(()),
    };
    if let Some(recording) = &context.recording {
        recording.finish();
    }
    ended
}

async fn reconcile(
    context: Arc<Context>,
    touched: mpsc::UnboundedReceiver<kube::runtime::reflector::ObjectRef<crate::api::DeadlineJob>>,
) {
    // Nothing is decided before every list is in; what is touched until then waits.
    context.stores.ready().await;
    controller::run(context, touched).await;
}

fn policy(args: &OperatorArgs) -> anyhow::Result<Policy> {
    anyhow::ensure!(
        args.capacity_share > 0.0 && args.capacity_share <= 1.0,
        "--capacity-share {} is not above 0 and at most 1: choose a share of the cluster such as 0.8",
        args.capacity_share
    );
    let order = args.order.parse().context("--order")?;
    Ok(Policy {
        capacity_share: args.capacity_share,
        surge_max: args.surge_max,
        ..Policy::parse(&args.policy, order).context("--policy")?
    })
}

/// The PriorityClass of clones, if it is there: a pod that names a missing one is refused.
async fn clone_priority(client: &Client, class: Option<String>) -> Option<ClonePriority> {
    let class = class.filter(|name| !name.is_empty())?;
    let api: Api<PriorityClass> = Api::all(client.clone());
    match api.get_opt(&class).await {
        Ok(Some(found)) => Some(ClonePriority {
            class,
            value: found.value,
        }),
        Ok(None) => {
            tracing::warn!(
                class,
                "PriorityClass of clones not found; they keep the template's"
            );
            None
        }
        Err(error) => {
            tracing::warn!(%error, class, "PriorityClass of clones not readable; they keep the template's");
            None
        }
    }
}

fn reporter() -> Reporter {
    Reporter {
        controller: "shed".to_owned(),
        instance: std::env::var("HOSTNAME").ok(),
    }
}

/// SIGTERM or SIGINT. Nothing needs finishing: whatever is under way can be repeated.
async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
