//! Turns of pages. A page is in memory up to three times while it is decoded, and any user may create objects of some
//! MB. So lists come in small pages, and the process has one page at a time, whatever it lists.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service;

use crate::cluster::Stores;
use crate::fair_places::{FairPlaces, Place};

/// Objects per page of a list.
pub const PAGE: u32 = 20;
/// A page that weighs more is asked for again with fewer objects.
const WEIGHT_MAX: usize = 16 * 1024 * 1024;
/// Bytes that count for each object within an object. However little JSON it has, its decoded form has all fields: a
/// volume those of 30 kinds.
const NESTED: usize = 1024;
/// A page that is not taken in by then loses its turn, so that a list without an answer holds up no other.
const TURN_MAX: Duration = Duration::from_secs(10);

const LIMIT: &str = "limit=";

/// The turns, by the namespace of the list.
pub(super) type PageTurns = FairPlaces<String>;
/// The turn of a page, until it has been taken in.
type Turn = Mutex<Option<Place<String>>>;

impl Stores {
    /// A client for one reader of lists. The pages of all these clients take turns. A page has been taken in when its
    /// reader sends the next request or drops the client.
    pub fn reader(&self, client: &Client) -> Client {
        let reader = Reader {
            client: client.clone(),
            turns: Arc::clone(&self.page_turns),
            turn: Arc::default(),
            limit: Arc::new(AtomicU32::new(PAGE)),
        };
        Client::new(reader, client.default_namespace())
    }
}

struct Reader {
    client: Client,
    turns: Arc<PageTurns>,
    turn: Arc<Turn>,
    /// Objects per page, by the bytes of the last one.
    limit: Arc<AtomicU32>,
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
        let (turn, limit) = (Arc::clone(&self.turn), Arc::clone(&self.limit));
        Box::pin(async move {
            let Some(namespace) = namespace_of_list(&request) else {
                return client.send(request).await;
            };
            let place = turns.acquire(&namespace).await;
            set(&turn, Some(place));
            tokio::spawn(end_in_time(Arc::downgrade(&turn)));
            let (list, _) = request.into_parts();
            let answer = page(&client, &list, &limit).await;
            if !matches!(&answer, Ok(page) if page.status().is_success()) {
                set(&turn, None);
            }
            answer
        })
    }
}

/// A page, with fewer objects if they are large.
async fn page(
    client: &Client,
    list: &Parts,
    limit: &AtomicU32,
) -> Result<Response<Body>, kube::Error> {
    loop {
        let most = limit.load(Ordering::Relaxed);
        let (head, mut body) = client.send(limited(list, most)).await?.into_parts();
        let (mut bytes, mut weight) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let data = frame?.into_data().unwrap_or_default();
            bytes.extend_from_slice(&data);
            weight += weigh(&data);
            if weight > WEIGHT_MAX && most > 1 {
                break;
            }
        }
        if weight <= WEIGHT_MAX || most == 1 {
            if weight <= WEIGHT_MAX / 8 {
                limit.store(PAGE.min(2 * most), Ordering::Relaxed);
            }
            return Ok(Response::from_parts(head, Body::from(bytes)));
        }
        limit.store(most.div_ceil(4), Ordering::Relaxed);
    }
}

/// About the bytes of JSON once they are decoded.
fn weigh(json: &[u8]) -> usize {
    let nested = json.iter().filter(|byte| **byte == b'{');
    json.len() + NESTED * nested.count()
}

/// The request for at most this many objects.
fn limited(list: &Parts, most: u32) -> Request<Body> {
    let mut list = list.clone();
    let text = list.uri.to_string();
    let begin = text.find(LIMIT).map_or(text.len(), |at| at + LIMIT.len());
    let (before, rest) = text.split_at(begin);
    let end = rest.find('&').unwrap_or(rest.len());
    let (asked, after) = rest.split_at(end);
    let most = asked.parse().map_or(most, |asked: u32| asked.min(most));
    if let Ok(uri) = format!("{before}{most}{after}").parse() {
        list.uri = uri;
    }
    Request::from_parts(list, Body::empty())
}

async fn end_in_time(turn: Weak<Turn>) {
    tokio::time::sleep(TURN_MAX).await;
    if let Some(turn) = turn.upgrade() {
        set(&turn, None);
    }
}

// Nothing panics while the lock is held.
fn set(turn: &Turn, place: Option<Place<String>>) {
    *turn.lock() = place;
}

/// The namespace that a request lists; empty if it lists all of them. None if it is no list.
fn namespace_of_list<B>(request: &Request<B>) -> Option<String> {
    let mut parameters = request.uri().query()?.split('&');
    let is_list = parameters.any(|parameter| parameter.starts_with(LIMIT));
    let mut segments = request.uri().path().split('/');
    let namespace = segments.find(|segment| *segment == "namespaces");
    let namespace = namespace.and_then(|_| segments.next()).unwrap_or_default();
    (is_list && request.method() == Method::GET).then(|| namespace.to_owned())
}

#[cfg(test)]
mod tests;
