//! Turns of pages. A page is in memory up to three times while it is decoded, and any user may create objects of more
//! than 1 MB. So lists come in small pages, and the process has one page at a time, whatever it lists.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Service;

use crate::cluster::Stores;
use crate::fair_places::{FairPlaces, Place};

/// Objects per page of a list.
pub const PAGE: u32 = 20;
/// A page that is not taken in by then loses its turn, so that a list without an answer holds up no other.
const TURN_MAX: Duration = Duration::from_secs(10);

/// The turns, by the namespace of the list.
pub(super) type PageTurns = FairPlaces<String>;
/// The turn of a page, until it has been taken in.
type Turn = Mutex<Option<Place<String>>>;

impl Stores {
    /// A client for one reader of lists. The pages of all these clients take turns. A page has been taken in when its
    /// reader sends the next request or drops the client.
    #[must_use]
    pub fn reader(&self, client: &Client) -> Client {
        let reader = Reader {
            client: client.clone(),
            turns: Arc::clone(&self.page_turns),
            turn: Arc::default(),
        };
        Client::new(reader, client.default_namespace())
    }
}

struct Reader {
    client: Client,
    turns: Arc<PageTurns>,
    turn: Arc<Turn>,
}

impl Service<Request<Body>> for Reader {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // This ends the turn of the page before.
        self.turn = Arc::default();
        let (client, turns) = (self.client.clone(), Arc::clone(&self.turns));
        let turn = Arc::clone(&self.turn);
        Box::pin(async move {
            if let Some(namespace) = namespace_of_list(&request) {
                let place = turns.acquire(&namespace).await;
                set(&turn, Some(place));
                tokio::spawn(end_in_time(Arc::downgrade(&turn)));
            }
            let answer = client.send(request).await;
            if !matches!(&answer, Ok(page) if page.status().is_success()) {
                set(&turn, None);
            }
            answer
        })
    }
}

async fn end_in_time(turn: Weak<Turn>) {
    tokio::time::sleep(TURN_MAX).await;
    if let Some(turn) = turn.upgrade() {
        set(&turn, None);
    }
}

// Nothing panics while the lock is held.
fn set(turn: &Turn, place: Option<Place<String>>) {
    *turn.lock().unwrap_or_else(PoisonError::into_inner) = place;
}

/// The namespace that a request lists; empty if it lists all of them. None if it is no list.
fn namespace_of_list<B>(request: &Request<B>) -> Option<String> {
    let mut parameters = request.uri().query()?.split('&');
    let is_list = parameters.any(|parameter| parameter.starts_with("limit="));
    let mut segments = request.uri().path().split('/');
    let namespace = segments.find(|segment| *segment == "namespaces");
    let namespace = namespace.and_then(|_| segments.next()).unwrap_or_default();
    (is_list && request.method() == Method::GET).then(|| namespace.to_owned())
}

#[cfg(test)]
mod tests;
