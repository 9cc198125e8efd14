//! Server-sent events: the lists of the page as they change.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_stream::wrappers::ReceiverStream;

use super::{Page, Visitor};
use crate::answers::Refusal;
use crate::answers::jobs::{self, Wanted};
use crate::answers::query::Query;

/// Open streams in all.
const STREAMS_MAX: usize = 32;
/// Open streams of one user.
const PER_USER: usize = 4;
/// Time between two looks at the jobs.
const PERIOD: Duration = Duration::from_secs(2);
/// Time between two looks at what costs more: the nodes, jobs that have ended, and the session.
const LONG_PERIOD: Duration = Duration::from_secs(10);
/// A proxy may close a connection that is silent for longer.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Frames that wait for a reader.
const WAITING_MAX: usize = 4;
/// A reader that takes no frame for this long is dropped.
const READER_PATIENCE: Duration = Duration::from_secs(10);

type Frame = Result<Bytes, Infallible>;

/// The open streams by user.
#[derive(Default)]
pub(super) struct Streams(Mutex<HashMap<String, usize>>);

/// The place of an open stream.
struct Place {
    streams: Arc<Streams>,
    user: String,
}

impl Streams {
    fn enter(self: &Arc<Self>, user: &str) -> Result<Place, Refusal> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= STREAMS_MAX {
            let error = format!("{STREAMS_MAX} pages are open already: try again later");
            return Err(Refusal::busy(error));
        }
        let own = open.entry(user.to_owned()).or_default();
        if *own >= PER_USER {
            let error = format!("your user has {PER_USER} pages open already: close one");
            return Err(Refusal::busy(error));
        }
        *own += 1;
        Ok(Place {
            streams: Arc::clone(self),
            user: user.to_owned(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self
            .streams
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// Opens a stream for the visitor with this cookie.
pub(super) fn stream(
    page: &Arc<Page>,
    visitor: &Visitor,
    cookie: &str,
    mut query: Query,
) -> Result<Response, Refusal> {
    let job = match query.take("job") {
        None => None,
        Some(job) => {
            let (namespace, name) = job
                .split_once('/')
                .ok_or_else(|| Refusal::bad(format!("job={job}: use <namespace>/<name>")))?;
            Some(Arc::new(Wanted::take(namespace, name, &mut query)?))
        }
    };
    query.none_left(&["job", "kind"])?;
    page.leading()?;
    let user = visitor.user.username.as_deref().unwrap_or_default();
    let place = page.streams.enter(user)?;
    let (frames, reader) = mpsc::channel(WAITING_MAX);
    let stream = Stream {
        page: Arc::clone(page),
        cookie: cookie.to_owned(),
        job,
        frames,
        seen: HashMap::new(),
        sent: Instant::now(),
        long_look: None,
    };
    tokio::spawn(async move {
        stream.run().await;
        drop(place);
    });
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(reader)));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    let caching = HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, caching);
    Ok(response)
}

struct Stream {
    page: Arc<Page>,
    /// Sealed: the token is read from it only for a look at the session.
    cookie: String,
    job: Option<Arc<Wanted>>,
    frames: mpsc::Sender<Frame>,
    /// Hash of the last body by event.
    seen: HashMap<&'static str, u64>,
    sent: Instant,
    long_look: Option<Instant>,
}

/// Why a stream ends.
enum End {
    /// The reader is gone, or too slow.
    Gone,
    /// The reader is told.
    Told(Refusal),
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Told(refusal)
    }
}

impl Stream {
    async fn run(mut self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.frames.closed() => return,
            }
            if let Err(end) = self.look().await {
                break end;
            }
        };
        if let End::Told(refusal) = end {
            let body = json!({"error": refusal.error}).to_string();
            let _ = self.send(frame("end", body.as_bytes())).await;
        }
    }

    async fn look(&mut self) -> Result<(), End> {
        self.page.leading()?;
        let is_long = self
            .long_look
            .is_none_or(|last| last.elapsed() >= LONG_PERIOD);
        // The review is kept for as long as a session need not be looked at.
        let visitor = self.page.visitor(Some(&self.cookie)).await?;
        let scope = self.page.scope(&visitor).await?;
        let list = self.page.list(jobs::Page::first(), scope.clone()).await?;
        self.tell("jobs", &list).await?;
        if let Some(job) = self.job.clone() {
            self.tell_job(&visitor, job, is_long).await?;
        }
        if is_long {
            self.long_look = Some(Instant::now());
            // The planner may be busy; the next look comes.
            if let Ok(nodes) = self.page.list_nodes(scope).await {
                self.tell("nodes", &nodes).await?;
            }
        }
        if self.sent.elapsed() >= SILENCE_MAX {
            self.send(Bytes::from_static(b":\n\n")).await?;
        }
        Ok(())
    }
}

impl Stream {
    async fn tell_job(
        &mut self,
        visitor: &Visitor,
        job: Arc<Wanted>,
        is_long: bool,
    ) -> Result<(), End> {
        // One that has ended is read from the apiserver, and hardly changes.
        if !is_long && job.find(&*self.page.leading()?).is_err() {
            return Ok(());
        }
        match self.page.job(visitor, job).await {
            Ok(job) => self.tell("job", &job).await,
            // It may come, or the next look is answered.
            Err(_) => Ok(()),
        }
    }

    /// Sends the body unless the reader has it.
    async fn tell(&mut self, event: &'static str, body: &[u8]) -> Result<(), End> {
        let hash = timeless_hash(body);
        if self.seen.insert(event, hash) == Some(hash) {
            return Ok(());
        }
        self.send(frame(event, body)).await
    }

    async fn send(&mut self, frame: Bytes) -> Result<(), End> {
        self.sent = Instant::now();
        let sent = self.frames.send_timeout(Ok(frame), READER_PATIENCE).await;
        sent.map_err(|_| End::Gone)
    }
}

/// JSON has no line breaks, so each body is one line.
fn frame(event: &str, body: &[u8]) -> Bytes {
    let head = format!("event: {event}\ndata: ");
    [head.as_bytes(), body, b"\n\n"].concat().into()
}

/// A hash of JSON without the values of the fields `time`, which are new in each answer.
fn timeless_hash(body: &[u8]) -> u64 {
    const TIME: &[u8] = b"\"time\":\"";
    let mut hasher = DefaultHasher::new();
    let mut rest = body;
    while let Some(at) = find(rest, TIME) {
        let (before, after) = rest.split_at(at + TIME.len());
        hasher.write(before);
        // A time has no quotation mark.
        let end = after.iter().position(|byte| *byte == b'"');
        rest = &after[end.unwrap_or(after.len())..];
    }
    hasher.write(rest);
    hasher.finish()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Site;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_dropped() {
        let (frames, mut reader) = mpsc::channel(1);
        let mut stream = Stream {
            page: Arc::clone(&Site::standby().page),
            cookie: String::new(),
            job: None,
            frames,
            seen: HashMap::new(),
            sent: Instant::now(),
            long_look: None,
        };
        assert!(stream.tell("jobs", b"{}").await.is_ok());
        assert!(stream.tell("jobs", b"{}").await.is_ok(), "no news");
        let begun = Instant::now();
        let told = stream.tell("nodes", b"{}").await;
        assert!(matches!(told, Err(End::Gone)));
        assert_eq!(begun.elapsed(), READER_PATIENCE);
        let first = reader.recv().await.unwrap().unwrap();
        assert_eq!(first, "event: jobs\ndata: {}\n\n");
    }

    #[test]
    fn an_answer_that_differs_in_its_time_alone_is_no_news() {
        let hash = |body: &str| timeless_hash(body.as_bytes());
        let before = hash(
            r#"{"time":"2030-01-01T00:00:00Z","total":1,"record":{"time":"2030-01-01T00:00:00Z"}}"#,
        );
        let later =
            r#"{"time":"2030-01-01T00:00:02Z","total":1,"record":{"time":"2030-01-01T00:00:02Z"}}"#;
        assert_eq!(hash(later), before);
        assert_ne!(hash(&later.replace("total\":1", "total\":2")), before);
        assert_ne!(hash(&later.replace("}}", "},\"more\":1}")), before);
        assert_ne!(hash(r#"{"time":"#), hash("{"));
    }
}
