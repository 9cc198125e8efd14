//! One life of the operator's process: everything in it is lost in a crash.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::events::{Recorder, Reporter};
use shed_core::plan::Move;
use shed_core::time::{Instant, Span};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::DeadlineJob;
use crate::attempt_pod::{AgentSettings, agent_context};
use crate::clock;
use crate::cluster::Stores;
use crate::context::attempt_annotations::AnnotationSettings;
use crate::context::shares::ShareTable;
use crate::context::spacing::LedgerRate;
use crate::context::{Context, JobMemories, JobMemory, PlannedMemory};
use crate::deadline_totals::{DeadlineOutcome, JobWithDeadline, StoredTotals};
use crate::durable_state::LatestExperience;
use crate::fair_places::FairPlaces;
use crate::fence::FenceTable;
use crate::forecast::ForecastTable;
use crate::lease::write_gate::WriteGate;
use crate::metrics::{Metrics, loose_counter};
use crate::plan_slices::PlanSlices;
use crate::planner_copies::CopyRequests;
use crate::progress::ProgressTable;
use crate::reconcile::companion_failures::Failures;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::event_queue::{self, EventSender};
use crate::reconcile::mock::Apiserver;
use crate::reconcile::queue::Wake;
use crate::reconcile::write_places::WritePlaces;
use crate::reconcile::{Error, driver};
use crate::watchdog::{Term, Watch};

/// No conversation takes that long, on a busy machine either. One that does waits for an event that never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One life of the operator's process.
pub struct Process {
    /// Its state.
    pub context: Arc<ReconcileContext>,
    event_sender: Mutex<EventSender>,
    recorder: Recorder,
}

impl Process {
    /// A process that has just listed everything.
    pub fn start(api: &Apiserver) -> Self {
        let jobs = api.world.lock().job.iter().cloned().collect();
        Self::with_stores(api, Stores::for_tests(jobs, api.pods(), &[]))
    }

    /// A process that sees this.
    pub fn with_stores(api: &Apiserver, stores: Arc<Stores>) -> Self {
        Self::with_totals(api, stores, StoredTotals::default())
    }

    /// A process that sees this and has read these totals.
    pub fn with_totals(api: &Apiserver, stores: Arc<Stores>, stored: StoredTotals) -> Self {
        let reporter = Reporter {
            controller: "shed".to_owned(),
            instance: None,
        };
        let term = Term {
            writes: WriteGate::new(None, loose_counter()),
        };
        let metrics = Metrics::new().unwrap();
        metrics.deadlines.show_totals(Some(stores.jobs.totals()));
        stores.jobs.totals().lock().restore(stored);
        let (events, event_sender) = event_queue::queue(metrics.events_dropped.clone());
        let shared = Context {
            progress: Arc::new(ProgressTable::new(clock::now())),
            clock: stores.clock_for_tests(),
            stores,
            plan_slices: PlanSlices::default(),
            shares: ShareTable::default(),
            clone_budget: None,
            copies: CopyRequests::default(),
            watch: Watch::new(Arc::default(), term),
            metrics: Arc::new(metrics),
            agent: AgentSettings {
                image: "agent".to_owned(),
                pull_policy: "IfNotPresent".to_owned(),
                pull_secret: None,
                security_context: agent_context::restricted(),
                keys: crate::fixtures::keys(),
            },
            job_memories: JobMemories::default(),
            forecasts: ForecastTable::default(),
            experience: LatestExperience::default(),
            recording: None,
        };
        let context = Arc::new(ReconcileContext {
            shared: Arc::new(shared),
            client: api.client.clone(),
            fence: Arc::new(FenceTable::default()),
            events,
            passes: FairPlaces::new(crate::reconcile::PASSES_AT_ONCE),
            write_places: WritePlaces::default(),
            ledger_rate: LedgerRate::default(),
            annotations: AnnotationSettings::default(),
            slack_classes: false,
            clone_class: None,
            companion_failures: Failures::default(),
        });
        Self {
            context,
            event_sender: Mutex::new(event_sender),
            recorder: Recorder::new(api.client.clone(), reporter),
        }
    }

    /// The planner leaves a slice for the job.
    pub fn plan(&self, job: &DeadlineJob, slice: Vec<Move>) {
        let slices = HashMap::from([(uid(job), slice)]);
        let ticks = self.context.clock.ticks();
        let plan_slices = &self.context.plan_slices;
        plan_slices.publish(slices, vec![], ticks);
    }

    /// Reconciles the job as the watch showed it, with the pods that it showed last.
    pub async fn reconcile(&self, watched: Arc<DeadlineJob>) -> Result<Wake, Error> {
        let work = |watched, context| driver::work(watched, context, None);
        self.reconcile_by(watched, work).await
    }

    /// The same with other work than the driver's.
    pub async fn reconcile_by<F>(
        &self,
        watched: Arc<DeadlineJob>,
        work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
    ) -> Result<Wake, Error>
    where
        F: Future<Output = Result<Wake, Error>> + Send + 'static,
    {
        let pass = driver::reconcile_by(watched, Arc::clone(&self.context), work);
        let ended = timeout(PATIENCE, pass).await.expect("a call is missing");
        self.send_events().await;
        ended
    }

    /// Sends the events that were published.
    pub async fn send_events(&self) {
        let mut sender = self.event_sender.lock().await;
        let sent = sender.flush(&self.recorder);
        timeout(PATIENCE, sent).await.expect("a call is missing");
    }

    /// The watches catch up, then the job is reconciled.
    pub async fn look(&self, api: &Apiserver) -> Result<Wake, Error> {
        self.context.stores.show(api.pods());
        self.ask(api);
        self.reconcile(api.job()).await
    }

    /// Polls the attempts for their progress.
    pub fn ask(&self, api: &Apiserver) {
        let world = api.world.lock();
        let Some(job) = &world.job else { return };
        for (&id, answer) in &world.answers {
            let Some(pod) = world.pods.get(&crate::reconcile::mock::pod_name(job, id)) else {
                continue;
            };
            let now = clock::now();
            let before = Instant(now.0 - 1000);
            let answers = [(before, answer.as_str()), (now, answer.as_str())];
            let pod_uid = pod.metadata.uid.as_deref().unwrap_or_default();
            let table = &self.context.progress;
            table.answer_for_tests(&uid(job), pod_uid, &answers);
        }
    }

    /// Deadlines met, missed and failed, once the watch has caught up.
    pub fn deadlines(&self, api: &Apiserver) -> [u64; 3] {
        let totals = self.context.stores.jobs.totals();
        if let Some(job) = &api.world.lock().job {
            totals
                .lock()
                .see(&uid(job), false, JobWithDeadline::of(job));
        }
        let shown = totals.lock().shown().expect("everything is known");
        let sum = |outcome| shown.iter().map(|(.., counts)| counts.of(outcome)).sum();
        DeadlineOutcome::ALL.map(sum)
    }

    /// Whether no slice waits or is under way.
    pub async fn is_drained(&self) -> bool {
        let ticks = self.context.clock.ticks();
        self.context
            .plan_slices
            .held(Span(i64::MAX), ticks)
            .is_empty()
    }

    /// Its memory of the job.
    pub fn planned(&self, job: &DeadlineJob) -> PlannedMemory {
        PlannedMemory::clone(&self.memory(job).planned)
    }

    pub fn memory(&self, job: &DeadlineJob) -> JobMemory {
        self.context
            .job_memories
            .with(&uid(job), |memory| memory.clone())
    }
}

fn uid(job: &DeadlineJob) -> Arc<str> {
    job.metadata.uid.as_deref().unwrap_or_default().into()
}
