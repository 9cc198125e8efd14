//! Whether this replica leads, waits, or does not know its role. The readiness probe answers from
//! it. A waiting replica is ready too, because a rolling update would otherwise never finish.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cluster::Stores;

/// State behind the readiness probe's answer.
#[derive(Default)]
pub struct Standing(Mutex<State>);

#[derive(Clone, Default)]
enum State {
    /// The Lease could not be read yet, or no longer.
    #[default]
    Unknown,
    /// Another replica leads.
    Waiting(String),
    /// Leads, with its view of the cluster once the watches have started.
    Leading(Option<Arc<Stores>>),
}

impl Standing {
    /// The Lease could not be read or written.
    pub fn unknown(&self) {
        self.set(State::Unknown);
    }

    /// Another replica holds the Lease. Returns whether that is new.
    pub fn waiting(&self, holder: &str) -> bool {
        let before = self.set(State::Waiting(holder.to_owned()));
        !matches!(before, State::Waiting(before) if before == holder)
    }

    /// This replica leads.
    pub fn leading(&self, stores: Option<Arc<Stores>>) {
        self.set(State::Leading(stores));
    }

    /// Whether this replica leads.
    pub fn leads(&self) -> bool {
        matches!(*self.0.lock(), State::Leading(_))
    }

    /// The identity of the replica that leads, if that is another one.
    pub fn leader_elsewhere(&self) -> Option<String> {
        match &*self.0.lock() {
            State::Waiting(holder) => Some(holder.clone()),
            State::Unknown | State::Leading(_) => None,
        }
    }

    /// Whether it is ready, and a line with the reason.
    pub fn ready(&self) -> Result<String, String> {
        match &*self.0.lock() {
            State::Unknown => {
                Err("the Lease is not readable or writable, see the log\n".to_owned())
            }
            State::Waiting(holder) => Ok(format!("ok: waiting, {holder} leads\n")),
            State::Leading(None) => Err("leading, waiting for the first lists\n".to_owned()),
            State::Leading(Some(stores)) => match stores.awaited() {
                missing if missing.is_empty() => Ok("ok: leading\n".to_owned()),
                missing => Err(format!(
                    "leading, waiting for the first lists of {}; if this lasts, the log has the cause, such as a \
                     missing right\n",
                    missing.join(", ")
                )),
            },
        }
    }

    fn set(&self, state: State) -> State {
        std::mem::replace(&mut self.0.lock(), state)
    }
}
