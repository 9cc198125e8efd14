//! Reads the apiserver's clock off its answers.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tower::{Layer, Service};

use super::Clock;

/// Reports the answers to a client to a clock.
pub struct ClockLayer(pub Arc<Clock>);

impl<S> Layer<S> for ClockLayer {
    type Service = Heard<S>;

    fn layer(&self, inner: S) -> Heard<S> {
        Heard {
            inner,
            clock: Arc::clone(&self.0),
        }
    }
}

/// A client whose answers' dates are recorded.
pub struct Heard<S> {
    inner: S,
    clock: Arc<Clock>,
}

impl<S, B, R> Service<Request<B>> for Heard<S>
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
        let clock = Arc::clone(&self.clock);
        let sent = clock.ticks();
        let answering = self.inner.call(request);
        Box::pin(async move {
            let answer = answering.await?;
            if let Some(date) = date(answer.headers()) {
                clock.hear(sent, clock.ticks(), date);
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
    use http::HeaderValue;
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
        let service = ClockLayer(Arc::clone(clock)).layer(service);
        service.oneshot(Request::new(())).await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_tells_the_apiservers_time_and_one_without_a_date_nothing() {
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
}
