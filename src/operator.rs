//! Assembles the operator from its settings: first the server and the election, then the shared
//! state, then the watches, the planner and the reconcilers. Everything that acts lives for one
//! term of leadership; the next term starts without it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use futures::FutureExt;
use http::{HeaderValue, header};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::client::ClientBuilder;
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Config};
use shed_core::policy::{Policy, Registry};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::agent_keys::{self, AgentKeys};
use crate::answer_layer::AnswerLayer;
use crate::api::DeadlineJob;
use crate::args::OperatorArgs;
use crate::attempt_pod::{AgentSettings, agent_context};
use crate::clock::Clock;
use crate::cluster::{Stores, Touched};
use crate::context::attempt_annotations::AnnotationSettings;
use crate::context::shares::ShareTable;
use crate::context::spacing::LedgerRate;
use crate::context::{Context, JobMemories};
use crate::durable_state::{Counted, HandOverRequests, LatestExperience, State, Store};
use crate::fair_places::FairPlaces;
use crate::fence::{Fence, FenceTable};
use crate::forecast::ForecastTable;
use crate::lease::elector::{Elector, Timing};
use crate::lease::role::Standing;
use crate::lease::write_gate::{WriteGate, WriteGateLayer};
use crate::lease::{Election, Place};
use crate::metrics::Metrics;
use crate::plan_slices::PlanSlices;
use crate::planner_copies::CopyRequests;
use crate::polling::poll_addresses::PollAddresses;
use crate::progress::ProgressTable;
use crate::reconcile::companion_failures::Failures as CompanionFailures;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::event_queue::{self, EventQueue};
use crate::reconcile::write_places::WritePlaces;
use crate::reconcile::{self, companions};
use crate::restore_check::RestoreCheck;
use crate::server::{Protection, Served};
use crate::watch_age::WatchAges;
use crate::watchdog::{self, Polls, Term, Watch};
use crate::{
    durable_state, fence, leader_api, planner, progress, recording, restore_check, server,
};

mod policy;
mod stuck_poll;

pub use policy::policies;

/// A call that takes longer has failed; watches end before that by themselves.
const CALL_TIMEOUT: Duration = Duration::from_secs(65);
/// At the start of a term the PriorityClass of clones is waited for this long, because no job is stopped before.
const CLASS_PATIENCE: Duration = Duration::from_secs(2);
/// At the end, writes that are under way get this long.
const LAST_WRITES: Duration = Duration::from_secs(3);

/// State that outlives a term of leadership.
struct Setup {
    args: OperatorArgs,
    policy: Policy,
    config: Config,
    metrics: Arc<Metrics>,
    standing: Arc<Standing>,
    /// For the answers to people.
    term: Arc<leader_api::CurrentTerm>,
    clock: Arc<Clock>,
    recording: Option<Arc<shed_record::Recorder>>,
    polls: Arc<Polls>,
    work: Handle,
}

/// Runs the operator with one of these policies until it receives a stop signal. The tasks of a term
/// of leadership run on the runtime `work`. It must not be this runtime, because the Lease must be
/// renewed also while a poll there does not end. Otherwise the term would be over before the watchdog
/// can note the job.
///
/// # Errors
/// If a setting is wrong, the apiserver can't be configured, or the server can't listen.
pub async fn run(args: OperatorArgs, work: Handle, policies: &Registry) -> anyhow::Result<()> {
    let policy = policy::of(&args, policies)?;
    let timing = args.lease.timing()?;
    let identity = identity();
    let config = configuration(&identity).await?;
    let place = args.lease.place(&config.default_namespace)?;
    let protection = protection(&args, &config)?;
    let doors = server::Doors::open(args.http_address, args.probe_address).await?;
    let metrics = Arc::new(Metrics::with_jobs(args.metrics_jobs).context("metrics")?);
    metrics.planning.show_policy(&policy);
    let standing = Arc::new(Standing::default());
    let clock = Clock::new();
    let polls = watched_polls(&config, &clock)?;
    let setup = Arc::new(Setup {
        polls,
        work,
        recording: recording::start(&args, &policy, &metrics, clock.now())?,
        policy,
        metrics: Arc::clone(&metrics),
        standing: Arc::clone(&standing),
        term: Arc::default(),
        clock: Arc::clone(&clock),
        config,
        args,
    });
    tracing::info!(
        policy = %setup.policy,
        version = env!("CARGO_PKG_VERSION"),
        identity,
        "operator starts"
    );
    let election = election(&setup, identity, timing, place)?;
    let (leads, term) = (Arc::clone(&standing), Arc::clone(&setup.term));
    let answers = leader_api::run(setup.args.ask_address, leads, term);
    setup.work.spawn(answers);
    let served = Served {
        metrics,
        standing,
        clock,
    };
    let ended = tokio::select! {
        result = server::run(doors, served, protection) => result,
        result = lead(&setup, election) => result,
    };
    if let Some(recording) = &setup.recording {
        recording.finish();
    }
    ended
}

/// How the metrics are protected, if that is enabled. Its client is not bound to a term, because every replica serves metrics.
fn protection(args: &OperatorArgs, config: &Config) -> anyhow::Result<Option<Protection>> {
    if !args.metrics_secure {
        anyhow::ensure!(
            args.metrics_cert_dir.is_none(),
            "--metrics-cert-dir has no effect without --metrics-secure: set both"
        );
        return Ok(None);
    }
    let client = Client::try_from(config.clone())?;
    Protection::open(args.metrics_cert_dir.as_deref(), client).map(Some)
}

/// The election of a leader, if it is enabled.
fn election(
    setup: &Setup,
    identity: String,
    timing: Timing,
    place: Place,
) -> anyhow::Result<Option<Election>> {
    if !setup.args.lease.leader_elect {
        return Ok(None);
    }
    let elector = Elector::new(identity, timing);
    let client = ClientBuilder::try_from(setup.config.clone())?
        .with_layer(&AnswerLayer {
            clock: Arc::clone(&setup.clock),
            watches: Arc::default(),
        })
        .build();
    let (lease, standing) = (setup.metrics.lease.clone(), Arc::clone(&setup.standing));
    let election = Election::new(client, place, elector, lease, standing);
    Ok(Some(election))
}

/// The polls of reconciles, and a watch over them that ends the process when one gets stuck.
fn watched_polls(config: &Config, clock: &Arc<Clock>) -> std::io::Result<Arc<Polls>> {
    let polls = Arc::new(Polls::default());
    let (at_the_end, its_clock) = (config.clone(), Arc::clone(clock));
    watchdog::start(&polls, watchdog::TICK, move |poll| {
        stuck_poll::end(&at_the_end, &its_clock, &poll)
    })?;
    Ok(polls)
}

/// The cluster of the service account or of the current kubeconfig.
///
/// # Errors
/// There is neither, or it is invalid. kube's text already contains its causes, so they are not added once more.
pub(crate) async fn infer_cluster() -> anyhow::Result<Config> {
    let found = Config::infer().await;
    found.map_err(|error| {
        anyhow::anyhow!("no cluster: neither a service account nor a kubeconfig was found: {error}")
    })
}

/// How calls reach the apiserver.
async fn configuration(identity: &str) -> anyhow::Result<Config> {
    let mut config = infer_cluster().await?;
    config.read_timeout = Some(CALL_TIMEOUT);
    // Up to eight minutes of them: `reconcile::overload` makes a few short ones.
    config.default_retry = false;
    let agent = format!("shed/{} {identity}", env!("CARGO_PKG_VERSION"));
    let agent = HeaderValue::from_str(&agent).context("HOSTNAME is not UTF-8 text")?;
    config.headers.push((header::USER_AGENT, agent));
    Ok(config)
}

/// Runs a term whenever this replica leads, until it receives a stop signal.
async fn lead(setup: &Arc<Setup>, mut election: Option<Election>) -> anyhow::Result<()> {
    let stop = stop_signal();
    tokio::pin!(stop);
    loop {
        let gate = tokio::select! {
            gate = acquire(setup, &mut election) => gate,
            () = &mut stop => return Ok(()),
        };
        // A task of its own, so that a long decision does not delay a renewal.
        let mut term = JoinSet::new();
        let (hand_over, requests) = durable_state::hand_over();
        let acting = act(Arc::clone(setup), Arc::clone(&gate), requests);
        term.spawn_on(acting, &setup.work);
        setup.metrics.lease.leader.set(1);
        let ended = tokio::select! {
            ended = term.join_next() => Some(why_ended(ended)),
            () = keep(&mut election, &gate) => None,
            () = &mut stop => {
                hand_over.take_place().await;
                Some(Ok(()))
            }
        };
        if ended.is_some() {
            gate.drain(LAST_WRITES).await;
        }
        gate.close();
        term.shutdown().await;
        setup.metrics.lease.leader.set(0);
        setup.metrics.forget_jobs();
        if let Some(ended) = ended {
            if let Some(election) = &mut election {
                election.release().await;
            }
            return ended;
        }
    }
}

async fn acquire(setup: &Setup, election: &mut Option<Election>) -> Arc<WriteGate> {
    if let Some(election) = election {
        return election.acquire().await;
    }
    setup.standing.leading(None);
    WriteGate::new(None, setup.metrics.lease.writes_refused.clone())
}

async fn keep(election: &mut Option<Election>, gate: &WriteGate) {
    match election {
        Some(election) => election.keep(gate).await,
        None => std::future::pending().await,
    }
}

/// Nothing of a term ends by itself.
fn why_ended(
    ended: Option<Result<anyhow::Result<&'static str>, tokio::task::JoinError>>,
) -> anyhow::Result<()> {
    match ended {
        Some(Ok(part)) => anyhow::bail!("the {} ended", part?),
        Some(Err(error)) => Err(error.into()),
        None => anyhow::bail!("nothing was started"),
    }
}

/// One term: all watches, the planner and the reconcilers, from a first list to the end. Returns
/// the part that ended.
async fn act(
    setup: Arc<Setup>,
    writes: Arc<WriteGate>,
    hand_overs: HandOverRequests,
) -> anyhow::Result<&'static str> {
    let clock = Arc::clone(&setup.clock);
    let term = Term { writes };
    let client = client(&setup.config, &clock, &term, &setup.metrics.watch_ages)?;
    let args = &setup.args;
    let keys = agent_keys::load(&client, &args.signing_secret, &args.signing_key_id);
    let keys = Arc::new(keys.await?);
    let (touched, touched_jobs) = mpsc::unbounded_channel();
    let (status_only, status_only_jobs) = mpsc::unbounded_channel();
    let (touched_batch, batch_jobs) = mpsc::unbounded_channel();
    let reported = Touched {
        jobs: touched.clone(),
        status_only_jobs: status_only,
        batch: touched_batch,
    };
    // Ends with this future.
    let mut tasks = JoinSet::new();
    let adopt_jobs = setup.args.adopt_jobs;
    let watched = Stores::watched(adopt_jobs);
    setup.metrics.watch_ages.begin(watched);
    let stores = Stores::start(&client, adopt_jobs, &reported, clock, &mut tasks);
    setup.standing.leading(Some(Arc::clone(&stores)));
    let recorder = Recorder::new(client.clone(), reporter());
    let (events, event_sender) = event_queue::queue(setup.metrics.events_dropped.clone());
    let name = &setup.args.state_config_map;
    // The lists are under way.
    let (store, clone_class) = tokio::join!(
        Store::open(&client, name, setup.metrics.state.clone()),
        clone_class(&client, setup.args.clone_priority_class.clone()),
    );
    let stored = store.stored();
    let counted = counted(&stores);
    // Otherwise the writer restores them once it can read them.
    if let Some(totals) = store.totals() {
        counted.totals.lock().restore(totals);
        counted.restore(&stored);
    }
    setup.metrics.deadlines.show_totals(Some(counted.totals));
    let shared = shared(&setup, stores, term, &keys, stored);
    let context = context(shared, client, events, (clone_class, &setup.args));
    setup.term.begin(&context.shared);
    store_state(&context, store, hand_overs, &mut tasks);
    tasks.spawn(event_sender.run(recorder).map(|()| "sender of events"));
    poll(&setup, &context, keys, &touched, &mut tasks);
    let planner = planner::run(Arc::clone(&context.shared), setup.policy.clone(), touched);
    tasks.spawn(planner.map(|()| "planner"));
    let orphans = reconcile::orphans::run(Arc::clone(&context));
    tasks.spawn(orphans.map(|()| "release of orphans"));
    announce(&context, &mut tasks);
    let companions = companions::run(Arc::clone(&context), batch_jobs);
    tasks.spawn(companions.map(|()| "companions of Jobs"));
    check_for_restores(&context, &mut tasks);
    tasks.spawn(reconcile(context, (touched_jobs, status_only_jobs)).map(|()| "reconciler"));
    tasks
        .join_next()
        .await
        .unwrap_or(Ok("term"))
        .map_err(Into::into)
}

/// State that the planner and the reconcilers of a term share.
fn shared(
    setup: &Setup,
    stores: Arc<Stores>,
    term: Term,
    keys: &Arc<AgentKeys>,
    stored: State,
) -> Arc<Context> {
    let args = &setup.args;
    let pull_secret = args.agent_pull_secret.clone();
    let security_context = args.agent_security_context.clone();
    Arc::new(Context {
        stores,
        progress: Arc::new(ProgressTable::new(setup.clock.now())),
        clock: Arc::clone(&setup.clock),
        plan_slices: PlanSlices::default(),
        shares: ShareTable::default(),
        clone_budget: args.clone_budget,
        copies: CopyRequests::default(),
        watch: Watch::new(Arc::clone(&setup.polls), term),
        metrics: Arc::clone(&setup.metrics),
        agent: AgentSettings {
            image: args.agent_image.clone(),
            pull_policy: args.agent_pull_policy.clone(),
            pull_secret: pull_secret.filter(|name| !name.is_empty()),
            security_context: security_context.unwrap_or_else(agent_context::restricted),
            keys: Arc::clone(keys),
        },
        job_memories: JobMemories::default(),
        forecasts: ForecastTable::restored(&stored.calibration),
        experience: LatestExperience::new(stored.planner),
        recording: setup.recording.clone(),
    })
}

fn annotations(args: &OperatorArgs) -> AnnotationSettings {
    AnnotationSettings {
        deletion_cost: args.deletion_cost,
        do_not_disrupt: args.do_not_disrupt,
        expected_end: args.expected_end,
    }
}

/// The rest that the reconcilers of a term share.
fn context(
    shared: Arc<Context>,
    client: Client,
    events: EventQueue,
    (clone_class, args): (Option<String>, &OperatorArgs),
) -> Arc<ReconcileContext> {
    Arc::new(ReconcileContext {
        shared,
        annotations: annotations(args),
        slack_classes: args.kueue_slack_classes,
        clone_class,
        client,
        fence: Arc::new(FenceTable::default()),
        events,
        passes: FairPlaces::new(reconcile::PASSES_AT_ONCE),
        write_places: WritePlaces::default(),
        ledger_rate: LedgerRate::default(),
        companion_failures: CompanionFailures::default(),
    })
}

/// What the watches of jobs count and learn.
fn counted(stores: &Stores) -> Counted {
    Counted {
        totals: stores.jobs.totals(),
        completions: stores.jobs.completions(),
        workflows: stores.jobs.workflows(),
    }
}

/// Starts the writer of the state for the next leader.
fn store_state(
    context: &ReconcileContext,
    store: Store,
    hand_overs: HandOverRequests,
    tasks: &mut JoinSet<&'static str>,
) {
    let shared = Arc::clone(&context.shared);
    let latest = move || State {
        planner: shared.experience.get(),
        calibration: shared.forecasts.calibration(),
        ..State::default()
    };
    let counted = counted(&context.stores);
    let writer = durable_state::run(store, counted, latest, hand_overs);
    tasks.spawn(writer.map(|()| "writer of the stored state"));
}

/// Starts the polls for progress, and those for commit requests of jobs with a fence.
fn poll(
    setup: &Setup,
    context: &ReconcileContext,
    keys: Arc<AgentKeys>,
    touched: &mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
    tasks: &mut JoinSet<&'static str>,
) {
    let addresses = PollAddresses::new(Arc::clone(&context.stores), setup.args.poll_loopback);
    let commits = fence::run(Fence {
        table: Arc::clone(&context.fence),
        addresses: addresses.clone(),
        metrics: Arc::clone(&context.metrics),
        keys: Arc::clone(&keys),
        clock: Arc::clone(&context.clock),
        touched: touched.clone(),
    });
    let poller = progress::run(
        Arc::clone(&context.progress),
        addresses,
        Arc::clone(&context.metrics),
        keys,
        Arc::clone(&context.clock),
        setup.args.progress_polls_per_second,
    );
    tasks.spawn(commits.map(|()| "fence's poller"));
    let stores = Arc::clone(&context.stores);
    tasks.spawn(async move {
        // The deadline of a companion is read with its Job.
        stores.ready().await;
        poller.await;
        "progress poller"
    });
}

/// Starts the check whether the apiserver's store was restored, which ends the term.
fn check_for_restores(context: &ReconcileContext, tasks: &mut JoinSet<&'static str>) {
    let check = RestoreCheck {
        client: context.client.clone(),
        shared: Arc::clone(&context.shared),
    };
    tasks.spawn(async move {
        restore_check::noticed(&check).await;
        "store of the apiserver was restored: the term"
    });
}

/// Starts the reporters of jobs and pods that shed does not act on.
fn announce(context: &Arc<ReconcileContext>, tasks: &mut JoinSet<&'static str>) {
    let undecodable = reconcile::undecodable_jobs::run(Arc::clone(context));
    tasks.spawn(undecodable.map(|()| "reports of undecodable objects and unknown fields"));
    let settings = reconcile::namespace_settings::run(Arc::clone(context));
    tasks.spawn(settings.map(|()| "reports of settings of namespaces"));
    let watch_only = reconcile::watch_only::run(Arc::clone(context));
    tasks.spawn(watch_only.map(|()| "reports of Jobs that are only watched"));
    let disowned = reconcile::disowned_pods::run(Arc::clone(context));
    tasks.spawn(disowned.map(|()| "reports of pods that are not attempts"));
    let unadopted = reconcile::unadopted_jobs::run(Arc::clone(context));
    tasks.spawn(unadopted.map(|()| "reports of Jobs that shed no longer runs"));
    let kueue = reconcile::kueue_discovery::run(Arc::clone(context));
    tasks.spawn(kueue.map(|()| "check whether the cluster has Kueue"));
    let blocked = reconcile::blocked_jobs::run(Arc::clone(context));
    tasks.spawn(blocked.map(|()| "count of jobs that cannot continue"));
}

/// A client for one term: a write of it must pass the term's gate.
fn client(
    config: &Config,
    clock: &Arc<Clock>,
    term: &Term,
    watches: &Arc<WatchAges>,
) -> Result<Client, kube::Error> {
    let builder = ClientBuilder::try_from(config.clone())?;
    Ok(builder
        .with_layer(&AnswerLayer {
            clock: Arc::clone(clock),
            watches: Arc::clone(watches),
        })
        .with_layer(&WriteGateLayer(Arc::clone(&term.writes)))
        .build())
}

/// Unique for every process, even for processes that use the same pod in turn. A new process must
/// wait until its predecessor's lease expires.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let host = if host.is_empty() {
        "local"
    } else {
        host.as_str()
    };
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let started = since_epoch.unwrap_or_default().as_nanos();
    format!("{host}_{started:x}-{:x}", std::process::id())
}

async fn reconcile(
    context: Arc<ReconcileContext>,
    (touched, status_only): (reconcile::TouchedJobs, reconcile::TouchedJobs),
) {
    // Decisions wait until every list is complete; changes until then are queued.
    context.stores.ready().await;
    reconcile::run(context, touched, status_only).await;
}

/// The PriorityClass of clones, if it is there: a pod that names a missing one is refused.
async fn clone_class(client: &Client, class: Option<String>) -> Option<String> {
    let class = class.filter(|name| !name.is_empty())?;
    let api: Api<PriorityClass> = Api::all(client.clone());
    match timeout(CLASS_PATIENCE, api.get_metadata_opt(&class)).await {
        Ok(Ok(Some(_))) => return Some(class),
        Ok(Ok(None)) => {
            tracing::warn!(class, "PriorityClass of clones not found; they get none");
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, class, "PriorityClass of clones not readable; they get none");
        }
        Err(_) => tracing::warn!(
            class,
            "PriorityClass of clones not read in time; they get none"
        ),
    }
    None
}

fn reporter() -> Reporter {
    Reporter {
        controller: "shed".to_owned(),
        instance: std::env::var("HOSTNAME").ok(),
    }
}

/// SIGTERM or SIGINT.
async fn stop_signal() {
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
