use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;

use super::*;
use crate::metrics::loose_counter;

/// An apiserver that needs a second for its answer.
#[derive(Clone, Default)]
struct Slow {
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Service<Request<()>> for Slow {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<()>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            this.begun.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            this.ended.fetch_add(1, Ordering::Relaxed);
            Ok(Response::new(()))
        })
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn gate(until: Option<Duration>) -> Arc<WriteGate> {
    WriteGate::new(until.map(|left| Instant::now() + left), loose_counter())
}

async fn send(gate: &Arc<WriteGate>, slow: &Slow, method: Method) -> Result<(), BoxError> {
    let mut client = WriteGateLayer(Arc::clone(gate)).layer(slow.clone());
    let request = Request::builder().method(method).body(()).unwrap();
    client.call(request).await.map(drop)
}

fn counts(slow: &Slow) -> (usize, usize) {
    let read = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    (read(&slow.begun), read(&slow.ended))
}

#[tokio::test(start_paused = true)]
async fn after_the_deadline_no_write_begins_and_reads_still_do() {
    let (gate, slow) = (gate(Some(seconds(5))), Slow::default());
    send(&gate, &slow, Method::POST).await.unwrap();
    tokio::time::advance(seconds(4)).await;
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let refused = send(&gate, &slow, method).await.unwrap_err();
        assert!(refused.is::<Deposed>());
    }
    assert_eq!(counts(&slow), (1, 1));
    assert_eq!(gate.refused.get(), 4);
    send(&gate, &slow, Method::GET).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_given_up_at_the_deadline() {
    let (gate, slow) = (gate(Some(Duration::from_millis(400))), Slow::default());
    let started = Instant::now();
    send(&gate, &slow, Method::PUT).await.unwrap_err();
    assert_eq!(started.elapsed().as_millis(), 400);
    assert_eq!(counts(&slow), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_meanwhile_lets_it_end() {
    let (gate, slow) = (gate(Some(Duration::from_millis(400))), Slow::default());
    let renew = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        gate.extend(Instant::now() + seconds(9));
    };
    let (sent, ()) = tokio::join!(send(&gate, &slow, Method::PUT), renew);
    sent.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_freeze_a_write_fails_though_its_timer_has_fired() {
    let (gate, slow) = (gate(Some(seconds(5))), Slow::default());
    let mut sending = pin!(send(&gate, &slow, Method::POST));
    assert!(futures::poll!(sending.as_mut()).is_pending());
    // Nothing of the process runs for half a minute.
    tokio::time::advance(seconds(30)).await;
    sending.await.unwrap_err();
    assert_eq!(counts(&slow), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn draining_lets_writes_end_and_none_begin() {
    let (gate, slow) = (gate(None), Slow::default());
    let drain = async {
        tokio::task::yield_now().await;
        gate.drain(seconds(3)).await;
        assert_eq!(counts(&slow), (1, 1), "it waited for the write");
    };
    let (sent, ()) = tokio::join!(send(&gate, &slow, Method::POST), drain);
    sent.unwrap();
    send(&gate, &slow, Method::POST).await.unwrap_err();
    gate.extend(Instant::now() + seconds(9));
    send(&gate, &slow, Method::POST).await.unwrap_err();
}
