//! Events on their way to the apiserver: best effort, bounded, apart from the passes that publish
//! them. Facts that must not be lost are in conditions. An event is counted and dropped if its
//! queue is full, or if the apiserver does not accept it in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, Recorder};
use parking_lot::Mutex;
use shed_core::time::{Instant, Span};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::fair_places::FairPlaces;
use crate::metrics::dropped_reasons::{QUEUE_FULL, RATE_LIMIT, REFUSED, TIMEOUT};
use crate::registrar::Counters;
use crate::token_bucket::TokenBucket;

/// Events that may wait or be sent, of all namespaces and of one.
const WAITING_MAX: usize = 1024;
const WAITING_MAX_OF_NAMESPACE: usize = 128;
/// Events of a namespace that are written at once, and the time until one more is: 36 000 in an hour at most, for which
/// the apiserver keeps them. Jobs have narrower bounds of their own.
const BURST_OF_NAMESPACE: u32 = 1000;
const PERIOD_OF_NAMESPACE: Span = Span(100);
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
    namespaces: Mutex<HashMap<String, Namespace>>,
    /// The begin of the time by which tokens are given out.
    begun: tokio::time::Instant,
    dropped: Counters<1>,
}

/// The events of a namespace.
struct Namespace {
    /// How many wait or are being sent.
    waiting: usize,
    tokens: TokenBucket,
}

/// A queue and its other end.
pub fn queue(dropped: Counters<1>) -> (EventQueue, EventSender) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let shared = Arc::new(Shared {
        namespaces: Mutex::default(),
        begun: tokio::time::Instant::now(),
        dropped,
    });
    let other_end = EventSender {
        receiver,
        shared: Arc::clone(&shared),
    };
    (EventQueue { sender, shared }, other_end)
}

impl EventQueue {
    /// Takes an event in, unless too many wait or were written of late.
    pub fn push(&self, event: Event, about: ObjectReference) {
        let namespace = about.namespace.clone().unwrap_or_default();
        if let Err(reason) = self.shared.enter(&namespace) {
            return self.shared.drop_one(reason);
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
    /// Counts an event, or returns why it is dropped.
    fn enter(&self, name: &str) -> Result<(), &'static str> {
        let now = self.now();
        let mut namespaces = self.namespaces.lock();
        let namespace = namespaces.entry(name.to_owned());
        let namespace = namespace.or_insert_with(|| Namespace {
            waiting: 0,
            tokens: TokenBucket::new(BURST_OF_NAMESPACE, PERIOD_OF_NAMESPACE),
        });
        if namespace.waiting >= WAITING_MAX_OF_NAMESPACE {
            return Err(QUEUE_FULL);
        }
        if !namespace.tokens.take(now) {
            return Err(RATE_LIMIT);
        }
        namespace.waiting += 1;
        Ok(())
    }

    fn leave(&self, name: &str) {
        let now = self.now();
        let mut namespaces = self.namespaces.lock();
        if let Some(namespace) = namespaces.get_mut(name) {
            namespace.waiting = namespace.waiting.saturating_sub(1);
        }
        // There are few, and one that is like new need not be kept.
        namespaces.retain(|_, it| it.waiting > 0 || !it.tokens.is_full(now));
    }

    fn now(&self) -> Instant {
        let elapsed = self.begun.elapsed().as_millis();
        Instant(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }

    fn drop_one(&self, reason: &'static str) {
        self.dropped.with([reason]).inc();
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
        let waiting: usize = queue
            .shared
            .namespaces
            .lock()
            .values()
            .map(|it| it.waiting)
            .sum();
        assert_eq!(waiting, 0);
        running.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_ten_thousand_jobs_of_a_namespace_are_bounded() {
        let (family, sent) = (
            Metrics::new().unwrap().events_dropped,
            Arc::new(AtomicUsize::new(0)),
        );
        let (queue, other_end) = queue(family.clone());
        let recorder = Recorder::new(client(Arc::clone(&sent)), Reporter::from("shed"));
        let running = tokio::spawn(other_end.run(recorder));
        let job = |number: usize| ObjectReference {
            // A name as long as a label's value may be.
            name: Some(format!("{number:0>63}")),
            uid: Some(number.to_string()),
            ..about("many")
        };
        // One event of each job within ten seconds, twice.
        for second in 0..20 {
            for number in 0..1000 {
                queue.push(event(second), job(number + second % 10 * 1000));
                if number % 100 == 99 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        let burst = BURST_OF_NAMESPACE as usize;
        let written = sent.load(Ordering::SeqCst);
        assert!((burst..=burst + 200).contains(&written), "{written}");
        let missing = 20_000 - written as u64;
        assert_eq!(
            dropped(&family, RATE_LIMIT) + dropped(&family, QUEUE_FULL),
            missing
        );
        // Other namespaces are not affected.
        queue.push(event(0), about("few"));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(sent.load(Ordering::SeqCst), written + 1);
        // After some minutes nothing is remembered.
        tokio::time::sleep(Duration::from_secs(200)).await;
        queue.push(event(1), about("few"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(queue.shared.namespaces.lock().len() <= 1);
        running.abort();
    }
}
