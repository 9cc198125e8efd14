//! Where a task with `resume: Range` stops. The operator says so while the task runs, and the task
//! finds it in a file that it looks at before each unit. Where the task really got to is in its last
//! report, which the agent leaves as its termination message: the kubelet keeps that with the pod.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::config::StopConfig;
use crate::resume::write_atomically;
use crate::signed::{Order, SignatureError, VerifyingKey, draw_nonce};
use crate::wire::FileContent;

/// Where the operator says it.
pub const STOP_PATH: &str = "/stop-at";

/// The task stops before this unit; if it is past it, it goes on to the end of its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAt {
    pub unit: u64,
}

impl Order for StopAt {
    const KIND: &'static str = "stop-at";
}

/// The agent's report of the stop point in each response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopState {
    /// The next order must carry it.
    pub nonce: String,
    /// The last stop point that the task received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u64>,
}

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error(transparent)]
    Refused(#[from] SignatureError),
    #[error("cannot write the stop file: {0}")]
    Write(#[from] io::Error),
}

pub(crate) struct Stop {
    attempt: String,
    key: VerifyingKey,
    file: PathBuf,
    last_word: PathBuf,
    state: Mutex<StopState>,
}

impl Stop {
    pub(crate) fn new(attempt: String, config: StopConfig) -> Result<Self, SignatureError> {
        let StopConfig {
            key,
            file,
            last_word,
        } = config;
        // A stop point from before a restart of the agent stays valid.
        let unit = std::fs::read_to_string(&file).ok();
        let state = StopState {
            nonce: draw_nonce()?,
            unit: unit.and_then(|text| text.trim().parse().ok()),
        };
        Ok(Self {
            attempt,
            key,
            file,
            last_word,
            state: Mutex::new(state),
        })
    }

    pub(crate) fn state(&self) -> StopState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, StopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what claims to be the operator's order. Each nonce is good for one: an order that
    /// was overheard can't be said again after a later one.
    pub(crate) fn take(&self, message: &[u8]) -> Result<(), StopError> {
        let mut state = self.lock();
        let order: StopAt = self.key.open(&self.attempt, &state.nonce, message)?;
        write_atomically(&self.file, format!("{}\n", order.unit).as_bytes())?;
        *state = StopState {
            nonce: draw_nonce()?,
            unit: Some(order.unit),
        };
        Ok(())
    }

    /// Leaves the task's last report where the kubelet reads it.
    pub(crate) fn say_last(&self, report: &FileContent) -> io::Result<()> {
        let FileContent::Bytes(bytes, _) = report else {
            return Ok(());
        };
        leave(&self.last_word, bytes)
    }
}

/// The file is there already and belongs to the kubelet: it is written, not replaced.
fn leave(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::write(path, bytes)
}
