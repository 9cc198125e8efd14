//! State that the reconcilers share and the planner does not touch.

use std::ops::Deref;
use std::sync::Arc;

use kube::Client;

use crate::context::Context;
use crate::context::attempt_annotations::AnnotationSettings;
use crate::context::spacing::LedgerRate;
use crate::fair_places::FairPlaces;
use crate::fence::FenceTable;
use crate::reconcile::companion_failures::Failures;
use crate::reconcile::event_queue::EventQueue;
use crate::reconcile::write_places::WritePlaces;

/// State that the reconcilers share. Only they write to the apiserver.
pub struct ReconcileContext {
    /// State that they share with the planner.
    pub shared: Arc<Context>,
    /// The apiserver.
    pub client: Client,
    /// Attempts that request a commit grant.
    pub fence: Arc<FenceTable>,
    /// Events for users.
    pub events: EventQueue,
    /// Places for passes over jobs.
    pub passes: Arc<FairPlaces<Arc<str>>>,
    /// Places for writes of pods.
    pub write_places: WritePlaces,
    /// The write rate of all ledgers.
    pub ledger_rate: LedgerRate,
    /// The annotations that shed writes on running attempts.
    pub annotations: AnnotationSettings,
    /// Whether Jobs that wait in a queue of Kueue get a priority class by their deadline.
    pub slack_classes: bool,
    /// PriorityClass of clones whose template names none.
    pub clone_class: Option<String>,
    /// Jobs whose companions cannot be created; shed can lose them.
    pub companion_failures: Failures,
}

/// What the planner shares is part of it.
impl Deref for ReconcileContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.shared
    }
}
