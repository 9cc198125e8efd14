use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};

use super::*;

const WATCH: &str = "/api/v1/pods?&watch=true&timeoutSeconds=55&resourceVersion=7";

type Answer = UnsyncBoxBody<Bytes, BoxError>;

/// An apiserver that answers each request after a second, sends for `lasts` more seconds, and ends
/// with `ends`.
#[derive(Clone)]
struct Slow {
    lasts: u64,
    ends: fn() -> Option<Result<Frame<Bytes>, BoxError>>,
    answers: bool,
}

impl Slow {
    fn lasting(lasts: u64) -> Self {
        Self {
            lasts,
            ends: || None,
            answers: true,
        }
    }
}

impl Service<Request<()>> for Slow {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !this.answers {
                return Err("the connection broke".into());
            }
            let end = stream::once(async move {
                tokio::time::sleep(Duration::from_secs(this.lasts)).await;
                (this.ends)()
            });
            let body = StreamBody::new(end.filter_map(std::future::ready));
            Ok(Response::new(body.boxed_unsync()))
        })
    }
}

async fn send(
    doubt: &Arc<Doubt>,
    slow: &Slow,
    method: Method,
    path: &str,
) -> Result<Response<Watched<Answer>>, BoxError> {
    let mut client = DoubtLayer(Arc::clone(doubt)).layer(slow.clone());
    let request = Request::builder().method(method).uri(path).body(());
    client.call(request.unwrap()).await
}

fn arisen(doubt: &Doubt) -> u64 {
    doubt.0.borrow().arisen
}

/// How often doubt has arisen when this call's answer has ended.
async fn doubts_after(slow: &Slow, path: &str) -> u64 {
    let doubt = Doubt::new();
    if let Ok(answer) = send(&doubt, slow, Method::GET, path).await {
        // How it ends is seen by the doubt that it leaves.
        drop(answer.into_body().collect().await);
    }
    arisen(&doubt)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_before_its_time_raises_doubt() {
    assert_eq!(doubts_after(&Slow::lasting(20), WATCH).await, 1);
    assert_eq!(doubts_after(&Slow::lasting(53), WATCH).await, 1);
    assert_eq!(doubts_after(&Slow::lasting(55), WATCH).await, 0);
    let without_limit = "/api/v1/pods?watch=1";
    assert_eq!(doubts_after(&Slow::lasting(55), without_limit).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_or_is_given_up_raises_doubt_whenever_it_does() {
    let breaking = Slow {
        ends: || Some(Err("reset by peer".into())),
        ..Slow::lasting(60)
    };
    assert_eq!(doubts_after(&breaking, WATCH).await, 1);
    let doubt = Doubt::new();
    drop(send(&doubt, &Slow::lasting(60), Method::GET, WATCH).await);
    assert_eq!(arisen(&doubt), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ends_raises_none_and_a_call_without_an_answer_does() {
    let list = "/api/v1/pods?&limit=500&timeoutSeconds=9&watch=false";
    assert_eq!(doubts_after(&Slow::lasting(1), list).await, 0);
    let silent = Slow {
        answers: false,
        ..Slow::lasting(0)
    };
    assert_eq!(doubts_after(&silent, list).await, 1);
}

#[tokio::test(start_paused = true)]
async fn in_doubt_nothing_is_changed_and_reads_go_on() {
    let (doubt, slow) = (Doubt::new(), Slow::lasting(0));
    doubt.raise();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let refused = send(&doubt, &slow, method, "/pods").await;
        assert!(refused.err().unwrap().is::<InDoubt>());
    }
    assert!(send(&doubt, &slow, Method::GET, "/pods").await.is_ok());
    doubt.dispel(doubt.arisen().await);
    assert!(send(&doubt, &slow, Method::POST, "/pods").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_given_up_when_doubt_arises() {
    let (doubt, slow) = (Doubt::new(), Slow::lasting(0));
    let raise = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        doubt.raise();
    };
    let writing = send(&doubt, &slow, Method::POST, "/pods");
    let (written, ()) = tokio::join!(writing, raise);
    assert!(written.err().unwrap().is::<InDoubt>());
}

#[tokio::test(start_paused = true)]
async fn doubt_that_arises_while_it_is_looked_stays() {
    let doubt = Doubt::new();
    doubt.raise();
    let first = doubt.arisen().await;
    doubt.raise();
    doubt.dispel(first);
    let patience = Duration::from_secs(1);
    assert!(
        tokio::time::timeout(patience, doubt.settled())
            .await
            .is_err()
    );
    doubt.dispel(doubt.arisen().await);
    doubt.settled().await;
}

#[tokio::test(start_paused = true)]
async fn what_agents_are_told_is_held_back_and_given_up_as_writes_are() {
    let doubt = Doubt::new();
    let sending = || tokio::time::sleep(Duration::from_secs(1));
    assert_eq!(doubt.unless_arisen(sending()).await, Some(()));
    let raise = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        doubt.raise();
    };
    let (sent, ()) = tokio::join!(doubt.unless_arisen(sending()), raise);
    assert_eq!(sent, None);
    let at_once = doubt.unless_arisen(std::future::ready(()));
    assert_eq!(at_once.await, None, "not even begun");
}
