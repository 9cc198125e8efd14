//! Events on their way to the apiserver: best effort, bounded, apart from the passes that publish
//! them. Facts that must not be lost are in conditions. An event is counted and dropped if its
//! queue is full, or if the apiserver does not accept it in time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, Recorder};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::fair_places::FairPlaces;
use crate::metrics::dropped_reasons::{QUEUE_FULL, REFUSED, TIMEOUT};
use crate::registrar::Counters;

/// Events that may wait or be sent, of all namespaces and of one.
const WAITING_MAX: usize = 1024;
const WAITING_MAX_OF_NAMESPACE: usize = 128;
/// Events that are sent at a time.
const SENT_AT_ONCE: usize = 16;
/// The apiserver has this long to take an event.
const PATIENCE: Duration = Duration::from_secs(10);

/// An event and its object.
struct Queued {
    event: Event,
    about: ObjectReference,
}

/// Takes events in.
pub struct EventQueue {
    sender: mpsc::Sender<Queued>,
    shared: Arc<Shared>,
}

/// Sends them.
pub struct EventSender {
    receiver: mpsc::Receiver<Queued>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Events by namespace that wait or are being sent.
    waiting: Mutex<HashMap<String, usize>>,
    dropped: Counters<1>,
}

/// A queue and its other end.
#[must_use]
pub fn queue(dropped: Counters<1>) -> (EventQueue, EventSender) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let shared = Arc::new(Shared {
        waiting: Mutex::default(),
        dropped,
    });
    let other_end = EventSender {
        receiver,
        shared: Arc::clone(&shared),
    };
    (EventQueue { sender, shared }, other_end)
}

impl EventQueue {
    /// Takes an event in, unless too many wait.
    pub fn push(&self, event: Event, about: ObjectReference) {
        let namespace = about.namespace.clone().unwrap_or_default();
        if !self.shared.enter(&namespace) {
            return self.shared.drop_one(QUEUE_FULL);
        }
        if self.sender.try_send(Queued { event, about }).is_err() {
            self.shared.leave(&namespace);
            self.shared.drop_one(QUEUE_FULL);
        }
    }
}

impl EventSender {
    /// Sends events as they come; the places are shared by namespace, so that a webhook that is slow over
    /// one namespace's events delays no other's.
    pub async fn run(mut self, recorder: Recorder) {
        let places = FairPlaces::new(SENT_AT_ONCE);
        // As many as may wait.
        let mut sending = JoinSet::new();
        loop {
            tokio::select! {
                queued = self.receiver.recv() => {
                    // The term is ending.
                    let Some(queued) = queued else { return };
                    let namespace = queued.about.namespace.clone().unwrap_or_default();
                    let (recorder, shared) = (recorder.clone(), Arc::clone(&self.shared));
                    let places = Arc::clone(&places);
                    sending.spawn(async move {
                        let _place = places.acquire(&namespace).await;
                        send(&recorder, &shared, &queued).await;
                    });
                }
                Some(_) = sending.join_next() => {}
            }
        }
    }

    /// Sends the waiting events, one after another.
    #[cfg(test)]
    pub async fn flush(&mut self, recorder: &Recorder) {
        while let Ok(queued) = self.receiver.try_recv() {
            send(recorder, &self.shared, &queued).await;
        }
    }
}

async fn send(recorder: &Recorder, shared: &Shared, queued: &Queued) {
    let sent = recorder.publish(&queued.event, &queued.about);
    match tokio::time::timeout(PATIENCE, sent).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(%error, "event");
            shared.drop_one(REFUSED);
        }
        Err(_) => shared.drop_one(TIMEOUT),
    }
    shared.leave(queued.about.namespace.as_deref().unwrap_or_default());
}

impl Shared {
    fn enter(&self, namespace: &str) -> bool {
        let mut waiting = self.lock();
        let count = waiting.entry(namespace.to_owned()).or_default();
        let is_in = *count < WAITING_MAX_OF_NAMESPACE;
        *count += usize::from(is_in);
        is_in
    }

    fn leave(&self, namespace: &str) {
        let mut waiting = self.lock();
        if let Some(count) = waiting.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(namespace);
            }
        }
    }

    fn drop_one(&self, reason: &'static str) {
        self.dropped.with([reason]).inc();
    }

    // A panic while the lock was held leaves counts that end with the term.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::runtime::events::{EventType, Reporter};

    use super::*;
    use crate::metrics::Metrics;

    fn event(number: usize) -> Event {
        Event {
            type_: EventType::Normal,
            reason: "Tested".to_owned(),
            note: None,
            action: format!("Test {number}"),
            secondary: None,
        }
    }

    fn about(namespace: &str) -> ObjectReference {
        ObjectReference {
            namespace: Some(namespace.to_owned()),
            name: Some("j".to_owned()),
            uid: Some("u".to_owned()),
            ..ObjectReference::default()
        }
    }

    fn dropped(family: &Counters<1>, reason: &'static str) -> u64 {
        family.with([reason]).get()
    }

    #[test]
    fn a_full_queue_drops_the_events_of_its_namespace_alone() {
        let family = Metrics::new().unwrap().events_dropped;
        let (queue, _other_end) = queue(family.clone());
        for number in 0..WAITING_MAX_OF_NAMESPACE + 3 {
            queue.push(event(number), about("many"));
        }
        assert_eq!(dropped(&family, QUEUE_FULL), 3);
        queue.push(event(0), about("few"));
        assert_eq!(dropped(&family, QUEUE_FULL), 3);
    }

    /// An apiserver that never answers for one namespace; returns how many events others have sent.
    fn client(sent: Arc<AtomicUsize>) -> Client {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Some((request, respond)) = handle.next_request().await {
                if request.uri().path().contains("/slow/") {
                    unanswered.push(respond);
                    continue;
                }
                sent.fetch_add(1, Ordering::SeqCst);
                let body = request.into_body().collect_bytes().await.unwrap();
                respond.send_response(Response::new(Body::from(body)));
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_whose_events_are_not_taken_delays_no_other() {
        let (family, sent) = (
            Metrics::new().unwrap().events_dropped,
            Arc::new(AtomicUsize::new(0)),
        );
        let (queue, other_end) = queue(family.clone());
        let reporter = Reporter::from("shed");
        let recorder = Recorder::new(client(Arc::clone(&sent)), reporter);
        let running = tokio::spawn(other_end.run(recorder));
        for number in 0..40 {
            queue.push(event(number), about("slow"));
        }
        for number in 0..20 {
            queue.push(event(number), about("quick"));
        }
        // Below the apiserver's time to take an event.
        tokio::time::sleep(PATIENCE / 2).await;
        assert_eq!(sent.load(Ordering::SeqCst), 20);
        assert_eq!(dropped(&family, TIMEOUT), 0);
        tokio::time::sleep(PATIENCE * 20).await;
        assert_eq!(dropped(&family, TIMEOUT), 40);
        assert!(queue.shared.lock().is_empty());
        running.abort();
    }
}
