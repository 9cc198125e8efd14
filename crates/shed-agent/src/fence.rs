//! The commit fence of one attempt: the task asks, the operator sees the question at its next
//! poll, and its signed answer sets the task free. Until then the task waits, however long the
//! operator is away: a late grant costs time, a second one would publish twice.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::config::FenceConfig;
use crate::signed::{Order, SignatureError, VerifyingKey, draw_nonce};
use crate::wire::WireError;

/// Where the operator asks whether the task wants to publish (GET, held until it does), and
/// where it leaves its grant (POST).
pub const FENCE_PATH: &str = "/fence";

/// How long a poll is held while the task does not ask: below the life of a connection.
pub const POLL_HELD: Duration = Duration::from_secs(4);

/// A commit grant: the operator gives it to one attempt of a task at a time, and to the next one only
/// when that attempt can't publish any more, and then with a higher token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitGrant {
    /// Uid of the job.
    pub job: String,
    pub task: u32,
    /// Part of the task's input; 0 where tasks are not split.
    pub segment: u32,
    /// Rises with every grant of the job: a store that has seen a higher one for the same task
    /// refuses this one.
    pub token: u64,
}

impl Order for CommitGrant {
    const KIND: &'static str = "commit-grant";
}

/// The agent's answer to a poll.
#[derive(Serialize, Deserialize)]
struct Poll {
    attempt: String,
    nonce: Option<String>,
}

/// The nonce of an agent whose task waits for a grant; none if it does not.
pub fn read_poll(body: &[u8], expected_uid: &str) -> Result<Option<String>, WireError> {
    let poll: Poll = serde_json::from_slice(body).map_err(|_| WireError::BadJson)?;
    if poll.attempt != expected_uid {
        return Err(WireError::WrongAttempt);
    }
    Ok(poll.nonce)
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Idle,
    Asked,
    Granted(CommitGrant),
}

/// The state of the task's request to publish.
pub(crate) struct Fence {
    attempt: String,
    key: VerifyingKey,
    /// One for the agent's life: a grant stays good for the attempt that has it, and an agent
    /// that was started again asks again.
    nonce: String,
    state: watch::Sender<State>,
}

impl Fence {
    pub(crate) fn new(attempt: String, config: &FenceConfig) -> Result<Self, SignatureError> {
        Ok(Self {
            attempt,
            key: config.key.clone(),
            nonce: draw_nonce()?,
            state: watch::Sender::new(State::Idle),
        })
    }

    /// Waits for the commit grant. A repeated request gets the same answer.
    pub(crate) async fn ask(&self) -> Option<CommitGrant> {
        self.state.send_if_modified(|state| {
            let is_new = *state == State::Idle;
            if is_new {
                *state = State::Asked;
            }
            is_new
        });
        let mut seen = self.state.subscribe();
        let granted = seen.wait_for(|state| matches!(state, State::Granted(_)));
        // Fails only when the fence is gone, which it is not.
        match &*granted.await.ok()? {
            State::Granted(grant) => Some(grant.clone()),
            State::Idle | State::Asked => None,
        }
    }

    /// The answer to a poll of the operator, as soon as the task asks.
    pub(crate) async fn poll(&self) -> serde_json::Result<Vec<u8>> {
        let mut seen = self.state.subscribe();
        let asked = seen.wait_for(|state| *state == State::Asked);
        let is_asked = matches!(tokio::time::timeout(POLL_HELD, asked).await, Ok(Ok(_)));
        serde_json::to_vec(&Poll {
            attempt: self.attempt.clone(),
            nonce: is_asked.then(|| self.nonce.clone()),
        })
    }

    /// Takes in what claims to be the operator's grant.
    pub(crate) fn grant(&self, message: &[u8]) -> Result<(), SignatureError> {
        let grant: CommitGrant = self.key.open(&self.attempt, &self.nonce, message)?;
        self.state.send_if_modified(|state| {
            let is_new = match state {
                State::Idle | State::Asked => true,
                // An older one may still be on its way.
                State::Granted(known) => known.token < grant.token,
            };
            if is_new {
                *state = State::Granted(grant.clone());
            }
            is_new
        });
        Ok(())
    }
}
