//! What is read off the answers of the apiserver: its time, and that it still answers a watch.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tower::{Layer, Service};

use crate::clock::Clock;
use crate::watch_age::{WatchAges, watched};

/// Notes the answers to a client.
#[derive(Clone)]
pub struct AnswerLayer {
    /// Hears when each answer was made.
    pub clock: Arc<Clock>,
    /// Hears of each answer to a watch.
    pub watches: Arc<WatchAges>,
}

impl<S> Layer<S> for AnswerLayer {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted {
            inner,
            notes: self.clone(),
        }
    }
}

/// A client whose answers are noted.
pub struct Noted<S> {
    inner: S,
    notes: AnswerLayer,
}

impl<S, B, R> Service<Request<B>> for Noted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let AnswerLayer { clock, watches } = self.notes.clone();
        let watched = watched(request.uri());
        let sent = clock.ticks();
        let answering = self.inner.call(request);
        Box::pin(async move {
            let answer = answering.await?;
            if let Some(date) = date(answer.headers()) {
                clock.hear(sent, clock.ticks(), date);
            }
            if let Some(resource) = watched.filter(|_| answer.status().is_success()) {
                watches.answered(resource);
            }
            Ok(answer)
        })
    }
}

/// When the answer was made, to the second. None for an answer without a date.
fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(header::DATE)?.to_str().ok()?;
    let parser = rfc2822::DateTimeParser::new();
    parser.parse_timestamp(date).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderValue, StatusCode};
    use shed_core::time::Span;
    use tower::ServiceExt;

    use super::*;
    use crate::clock;

    async fn answer(clock: &Arc<Clock>, date: Option<&str>) {
        let date = date.map(|date| HeaderValue::from_str(date).unwrap());
        let service = tower::service_fn(move |_: Request<()>| {
            let mut answer = Response::new(());
            if let Some(date) = date.clone() {
                answer.headers_mut().insert(header::DATE, date);
            }
            std::future::ready(Ok::<_, std::convert::Infallible>(answer))
        });
        let service = layer(clock, &Arc::default()).layer(service);
        service.oneshot(Request::new(())).await.unwrap();
    }

    #[tokio::test]
    async fn only_an_answer_with_a_date_reports_the_apiserver_time() {
        let clock = Clock::new();
        answer(&clock, None).await;
        answer(&clock, Some("yesterday")).await;
        assert_eq!(clock.uncertainty(), None);
        let ahead = clock::wall().plus(Span::from_seconds(300));
        let date = clock::timestamp(ahead).strftime("%a, %d %b %Y %H:%M:%S GMT");
        answer(&clock, Some(&date.to_string())).await;
        let offset = clock.offset().0;
        assert!((298_900..=301_100).contains(&offset), "{offset}");
        assert!(clock.certainty().is_some());
    }

    fn layer(clock: &Arc<Clock>, watches: &Arc<WatchAges>) -> AnswerLayer {
        AnswerLayer {
            clock: Arc::clone(clock),
            watches: Arc::clone(watches),
        }
    }

    async fn ask(ages: &Arc<WatchAges>, uri: &'static str, status: StatusCode) {
        let answer = move |_: Request<()>| {
            let mut answer = Response::new(());
            *answer.status_mut() = status;
            std::future::ready(Ok::<_, std::convert::Infallible>(answer))
        };
        let service = layer(&Clock::new(), ages).layer(tower::service_fn(answer));
        let request = Request::get(uri).body(()).unwrap();
        service.oneshot(request).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_as_old_as_its_last_good_answer() {
        let ages = Arc::new(WatchAges::default());
        ask(&ages, "/api/v1/pods?limit=500", StatusCode::OK).await;
        assert_eq!(ages.seconds(), []);
        let watch = "/api/v1/pods?&watch=true&timeoutSeconds=55";
        ask(&ages, watch, StatusCode::OK).await;
        tokio::time::advance(Duration::from_secs(60)).await;
        ask(&ages, watch, StatusCode::TOO_MANY_REQUESTS).await;
        assert_eq!(ages.seconds(), [("pods".to_owned(), 60.0)]);
        ask(&ages, watch, StatusCode::OK).await;
        assert_eq!(ages.seconds(), [("pods".to_owned(), 0.0)]);
        ages.clear();
        assert_eq!(ages.seconds(), []);
        ages.begin(&["nodes"]);
        tokio::time::advance(Duration::from_secs(7)).await;
        let list = "/api/v1/nodes?limit=500";
        ask(&ages, list, StatusCode::FORBIDDEN).await;
        assert_eq!(ages.seconds(), [("nodes".to_owned(), 7.0)]);
    }
}
