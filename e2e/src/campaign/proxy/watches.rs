//! Notifications of a watch, delayed, cut or silenced at the right time.

use std::sync::Arc;
use std::time::Instant;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::json;

use super::Shared;
use super::call::Watched;
use super::scope::{self, Reported};
use crate::campaign::fault::{Counts, Fault, hold};
use crate::proxy::{self, Broken, status};

/// The fate of one notification.
enum Fate {
    Shown,
    Gone,
    Silent,
}

/// A watch's answer, taken apart into its lines.
struct Lines {
    shared: Arc<Shared>,
    kind: Watched,
    data: BoxStream<'static, Option<Bytes>>,
    buffer: Vec<u8>,
    ended: bool,
    /// When it breaks off.
    until: Option<Instant>,
}

/// The answer to a watch, as the operator gets it.
pub fn through(shared: Arc<Shared>, kind: Watched, body: Body) -> proxy::Body {
    let data = body.into_data_stream().map(Result::ok).boxed();
    let until = shared.breaks_at();
    let lines = Lines {
        shared,
        kind,
        data,
        buffer: Vec::new(),
        ended: false,
        until,
    };
    let frames = stream::unfold(lines, |mut lines| async {
        if lines.ended {
            return None;
        }
        let Some(until) = lines.until else {
            let line = lines.shown().await?;
            return Some((Ok(Frame::data(line)), lines));
        };
        match tokio::time::timeout_at(until.into(), lines.shown()).await {
            Ok(line) => Some((Ok(Frame::data(line?)), lines)),
            Err(_) => {
                lines.ended = true;
                Some((Err(Broken), lines))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Lines {
    /// The next line that the operator gets, when it gets it.
    async fn shown(&mut self) -> Option<Bytes> {
        let (line, reported) = self.next_of_scope().await?;
        let concerns = reported.as_ref().is_none_or(|reported| reported.concerns);
        let fate = match concerns {
            true => self.shared.notified(self.kind),
            false => Fate::Shown,
        };
        while let Some(until) = self.shared.held(self.kind) {
            tokio::time::sleep_until(until.into()).await;
        }
        match fate {
            Fate::Shown => {
                let version = reported.map_or(0, |reported| reported.version);
                let now = Instant::now();
                self.shared.sight.lock().shown.insert(version, now);
                Some(line)
            }
            Fate::Gone => {
                self.ended = true;
                let expired = status(410, "Expired", "too old resource version");
                let event = json!({"type": "ERROR", "object": expired});
                Some(Bytes::from(format!("{event}\n")))
            }
            Fate::Silent => std::future::pending().await,
        }
    }

    /// The next line that is the operator's to see, and what it tells if that can be read.
    async fn next_of_scope(&mut self) -> Option<(Bytes, Option<Reported>)> {
        loop {
            let line = self.next().await?;
            let reported = scope::reported(&line);
            let is_shown = |reported| self.shared.script.scope.shows(reported);
            if reported.as_ref().is_none_or(is_shown) {
                return Some((line, reported));
            }
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                return Some(Bytes::from(std::mem::replace(&mut self.buffer, rest)));
            }
            self.buffer.extend_from_slice(&self.data.next().await??);
        }
    }
}

impl Shared {
    /// When a watch that begins now breaks off, if the fault breaks watches.
    fn breaks_at(&self) -> Option<Instant> {
        let number = self.seen.lock().called.len() as u64;
        let is_cut = self.script.fault_is(Fault::Turmoil);
        is_cut.then(|| Instant::now() + hold(1, number))
    }

    /// Counts a notification, and strikes if it is the one.
    fn notified(&self, kind: Watched) -> Fate {
        let mut seen = self.seen.lock();
        match kind {
            Watched::Pods => seen.pods += 1,
            Watched::Jobs => seen.jobs += 1,
        }
        let Some(point) = self.script.point.filter(|_| !seen.struck) else {
            return Fate::Shown;
        };
        let counted = match point.fault.counts() {
            counts @ Counts::Notifications { .. } => counts.of(&seen),
            _ => seen.pods,
        };
        if counted != point.at {
            return Fate::Shown;
        }
        let fate = match point.fault {
            Fault::StalePods | Fault::StaleJobs | Fault::StaleBoth => {
                seen.held_until = Some(Instant::now() + point.lasts);
                Fate::Shown
            }
            Fault::Gone => Fate::Gone,
            Fault::SilentWatch if kind == Watched::Pods => Fate::Silent,
            _ => return Fate::Shown,
        };
        drop(seen);
        self.strike(point.fault);
        fate
    }

    /// Until when a watch of this kind says nothing.
    fn held(&self, kind: Watched) -> Option<Instant> {
        let point = self.script.point?;
        let Counts::Notifications { pods, jobs } = point.fault.counts() else {
            return None;
        };
        let concerned = match kind {
            Watched::Pods => pods,
            Watched::Jobs => jobs,
        };
        let until = self.seen.lock().held_until.filter(|_| concerned)?;
        (Instant::now() < until).then_some(until)
    }
}
