//! How long ago the apiserver answered each watch. It ends every watch within a minute, and shed starts it again, so
//! that a healthy watch is young although nothing happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use tokio::time::Instant;
use tower::{Layer, Service};

/// When the apiserver last answered the watch of each resource.
#[derive(Default)]
pub struct WatchAges(Mutex<BTreeMap<String, Instant>>);

impl WatchAges {
    /// Seconds since the last answer, by resource.
    pub fn seconds(&self) -> Vec<(String, f64)> {
        let now = Instant::now();
        let age = |at: &Instant| now.duration_since(*at).as_secs_f64();
        let watches = self.lock();
        let ages = watches.iter();
        ages.map(|(resource, at)| (resource.clone(), age(at)))
            .collect()
    }

    /// Watches of these resources begin. Without an answer they age from now on.
    pub fn begin(&self, resources: &[&str]) {
        for resource in resources {
            self.answered((*resource).to_owned());
        }
    }

    /// Another replica watches now.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn answered(&self, resource: String) {
        self.lock().insert(resource, Instant::now());
    }

    // A panic while the lock was held leaves whole entries.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resource that a request watches.
fn watched(uri: &Uri) -> Option<String> {
    let mut parameters = uri.query()?.split('&');
    let is_watch = parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"));
    let resource = uri.path().rsplit('/').next()?;
    is_watch.then(|| resource.to_owned())
}

/// Notes the answers to a client's watches.
pub struct WatchAgeLayer(pub Arc<WatchAges>);

impl<S> Layer<S> for WatchAgeLayer {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted {
            inner,
            ages: Arc::clone(&self.0),
        }
    }
}

/// A client whose watches are noted.
pub struct Noted<S> {
    inner: S,
    ages: Arc<WatchAges>,
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
        let watched = watched(request.uri());
        let ages = Arc::clone(&self.ages);
        let answering = self.inner.call(request);
        Box::pin(async move {
            let answer = answering.await?;
            if let Some(resource) = watched.filter(|_| answer.status().is_success()) {
                ages.answered(resource);
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;
    use tower::ServiceExt;

    use super::*;

    async fn ask(ages: &Arc<WatchAges>, uri: &'static str, status: StatusCode) {
        let answer = move |_: Request<()>| {
            let mut answer = Response::new(());
            *answer.status_mut() = status;
            std::future::ready(Ok::<_, std::convert::Infallible>(answer))
        };
        let service = WatchAgeLayer(Arc::clone(ages)).layer(tower::service_fn(answer));
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
