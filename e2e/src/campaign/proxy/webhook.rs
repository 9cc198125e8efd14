//! The effect of a webhook of one namespace on the operator's calls there, and of an overloaded apiserver.

use std::time::{Duration, Instant};

use http::Method;

use super::Shared;
use super::call::Call;
use crate::campaign::fault::{Fault, Webhook, draw};
use crate::proxy::{Answer, refusal};

/// How long the webhook is as it is under [`Fault::SlowWebhook`].
pub const LASTS: Duration = Duration::from_secs(30);
/// The apiserver waits for no webhook longer than this.
const PATIENCE: Duration = Duration::from_secs(30);
/// One of this many answers is an error under [`Fault::Overloaded`] and [`Fault::Turmoil`].
const ONE_OF: u64 = 100;

/// The response in place of the apiserver's.
pub enum Instead {
    /// The call is not carried out.
    Of(Answer),
    /// It is.
    After(Answer),
    /// It is, and there is no answer.
    Nothing,
}

impl Shared {
    /// The fault's response to the call.
    pub(super) async fn instead(&self, call: &Call) -> Option<Instead> {
        if let Some(refused) = self.refuse(call) {
            return Some(Instead::Of(refused));
        }
        if let Some(denied) = self.admitted(call).await {
            return Some(Instead::Of(denied));
        }
        self.overload(call)
    }

    /// Waits as long as the webhook takes; the answer, if it is the webhook's.
    async fn admitted(&self, call: &Call) -> Option<Answer> {
        let point = self.script.point;
        let point = point.filter(|point| point.fault == Fault::SlowWebhook)?;
        let until = self.seen.lock().webhook_until?;
        let (method, does) = point.webhook();
        let own = &self.script.environment.as_ref()?.own;
        let is_asked = Instant::now() < until && call.is_about_pods(own, &method);
        if !is_asked {
            return None;
        }
        self.log(&format!("{}: the webhook {does:?}", call.words()));
        match does {
            Webhook::Hangs => {
                tokio::time::sleep(PATIENCE).await;
                Some(failed("context deadline exceeded"))
            }
            Webhook::Slow(time) => {
                tokio::time::sleep(time).await;
                None
            }
            Webhook::Denies(403) => {
                let message = "admission webhook \"slow.example.com\" denied the request";
                Some(refusal(403, "Forbidden", message, None))
            }
            Webhook::Denies(_) => Some(failed("no endpoints available")),
        }
    }

    /// Whether the apiserver has too much to do for this call.
    fn overload(&self, call: &Call) -> Option<Instead> {
        let is_turmoil = self.script.fault_is(Fault::Turmoil);
        if !is_turmoil && !self.script.fault_is(Fault::Overloaded) {
            return None;
        }
        let mut seen = self.seen.lock();
        let number = seen.called.len() as u64;
        if !is_hit(number) {
            return None;
        }
        seen.struck = true;
        drop(seen);
        self.log(&format!("{}: too much to do", call.words()));
        match draw(3, number) % 4 {
            0 if is_turmoil => return Some(Instead::Nothing),
            1 if is_turmoil && call.is_write() => {
                let message = "the object has been modified";
                return Some(Instead::Of(refusal(409, "Conflict", message, None)));
            }
            _ => {}
        }
        let (is_carried_out, answer) = match draw(2, number) % 3 {
            0 => (
                false,
                refusal(429, "TooManyRequests", "too many requests", Some("1")),
            ),
            // etcd may have committed what it did not answer in time.
            1 => (
                call.is_write(),
                refusal(500, "InternalError", "etcdserver: request timed out", None),
            ),
            _ => (
                false,
                refusal(503, "ServiceUnavailable", "the server is busy", None),
            ),
        };
        Some(match is_carried_out {
            true => Instead::After(answer),
            false => Instead::Of(answer),
        })
    }
}

fn is_hit(number: u64) -> bool {
    draw(SALT, number).is_multiple_of(ONE_OF)
}

/// Chosen so that the first calls of a run are hit, too.
const SALT: u64 = 8;

fn failed(why: &str) -> Answer {
    let message =
        format!("Internal error occurred: failed calling webhook \"slow.example.com\": {why}");
    refusal(500, "InternalError", &message, None)
}

impl Call {
    /// Whether it does this to a pod of the namespace.
    fn is_about_pods(&self, namespace: &str, method: &Method) -> bool {
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let rest = self.path().strip_prefix(&pods);
        self.method() == method && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_of_answers_is_hit_and_so_is_an_early_one() {
        let hits = (1..=10_000).filter(|&number| is_hit(number)).count();
        assert!((80..=120).contains(&hits), "{hits}");
        assert!((1..=60).any(is_hit));
    }
}
