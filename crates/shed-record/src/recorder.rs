//! Recording for a planner: a thread writes, and the planner never waits for it
//! and never fails. Entries beyond the thread's speed are lost, counted, and marked as a gap.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use shed_core::policy::Policy;

use crate::schema::Ended;
use crate::writer::{Pass, WriteError, Writer};

/// Passes that may wait to be written: each holds a whole snapshot.
const PASSES_WAITING_MAX: usize = 8;
/// Everything that may wait: ends of attempts come in bursts and are small.
const WAITING_MAX: usize = 4096;
/// After a failure nothing is tried for this long: a full disk would be asked at every pass.
const PAUSE: Duration = Duration::from_secs(10);
/// At the end, what still waits gets this long.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// The error; the recording continues.
#[derive(Debug)]
pub enum Fault {
    /// A pass or the end of an attempt is not recorded.
    Lost,
    /// A file could not be written; what follows begins a new one.
    Write(WriteError),
}

type OnFault = Arc<dyn Fn(Fault) + Send + Sync>;

enum Message {
    /// A pass, and how many before it were lost.
    Pass(Box<Pass>, u64),
    Ended(Box<Ended>),
    Finish,
}

/// Hands passes over to the thread that writes them.
pub struct Recorder {
    sender: SyncSender<Message>,
    finished: Mutex<Receiver<()>>,
    passes_waiting: Arc<AtomicUsize>,
    /// Whether the writer needs a pass that is decided from the memory alone.
    full_pass_needed: Arc<AtomicBool>,
    /// Passes lost since the last one that was handed over.
    lost: Mutex<u64>,
    on_fault: OnFault,
}

impl Recorder {
    /// Starts the thread. It writes to `folder` at most about `bytes_max` bytes, and tells every
    /// fault to `on_fault`.
    pub fn start(
        folder: &Path,
        bytes_max: u64,
        policy: &Policy,
        run: shed_core::time::Instant,
        on_fault: impl Fn(Fault) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        let (notify_finished, finished) = mpsc::channel();
        let on_fault: OnFault = Arc::new(on_fault);
        let passes_waiting = Arc::new(AtomicUsize::new(0));
        let full_pass_needed = Arc::new(AtomicBool::new(true));
        let mut thread = Thread {
            writer: Writer::new(folder, bytes_max, policy, run),
            passes_waiting: Arc::clone(&passes_waiting),
            full_pass_needed: Arc::clone(&full_pass_needed),
            on_fault: Arc::clone(&on_fault),
            paused_until: None,
        };
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || {
                thread.run(&receiver);
                // The receiver may be gone.
                let _ = notify_finished.send(());
            })?;
        Ok(Self {
            sender,
            finished: Mutex::new(finished),
            passes_waiting,
            full_pass_needed,
            lost: Mutex::new(0),
            on_fault,
        })
    }

    /// Whether the next pass must look at every job, because it begins a file or follows a gap. The planner asks this
    /// once before each pass. A pass that follows a lost one is lost too.
    pub fn needs_full_pass(&self) -> bool {
        let is_needed = self.full_pass_needed.swap(false, Ordering::AcqRel);
        is_needed || *self.lost.lock() > 0
    }

    /// Records a pass.
    pub fn pass(&self, pass: Pass) {
        let mut lost = self.lost.lock();
        let waiting = self.passes_waiting.fetch_add(1, Ordering::AcqRel);
        let message = Message::Pass(Box::new(pass), *lost);
        if waiting < PASSES_WAITING_MAX && self.sender.try_send(message).is_ok() {
            *lost = 0;
            return;
        }
        self.passes_waiting.fetch_sub(1, Ordering::AcqRel);
        *lost += 1;
        (self.on_fault)(Fault::Lost);
    }

    /// Records the end of an attempt.
    pub fn ended(&self, ended: Ended) {
        let message = Message::Ended(Box::new(ended));
        if self.sender.try_send(message).is_err() {
            (self.on_fault)(Fault::Lost);
        }
    }

    /// Ends the recording; what still waits gets two seconds to be written.
    pub fn finish(&self) {
        let until = Instant::now() + LAST_WRITES;
        while self.sender.try_send(Message::Finish).is_err() {
            if Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let left = until.saturating_duration_since(Instant::now());
        // Not finished in time: readers put up with a file without its end.
        let _ = self.finished.lock().recv_timeout(left);
    }
}

struct Thread {
    writer: Writer,
    passes_waiting: Arc<AtomicUsize>,
    full_pass_needed: Arc<AtomicBool>,
    on_fault: OnFault,
    paused_until: Option<Instant>,
}

impl Thread {
    fn run(&mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            match message {
                Message::Pass(pass, lost) => {
                    self.writer.lose(lost);
                    self.pass(*pass);
                    self.passes_waiting.fetch_sub(1, Ordering::AcqRel);
                }
                Message::Ended(ended) => {
                    let written = self.writer.ended(*ended);
                    self.note(written);
                }
                Message::Finish => break,
            }
        }
        let finished = self.writer.finish();
        self.note(finished);
    }

    fn pass(&mut self, pass: Pass) {
        if self
            .paused_until
            .is_some_and(|until| Instant::now() < until)
        {
            self.writer.lose(1);
            (self.on_fault)(Fault::Lost);
            return;
        }
        self.paused_until = None;
        let written = self.writer.pass(pass);
        if matches!(written, Ok(false)) {
            (self.on_fault)(Fault::Lost);
        }
        self.note(written.map(|_| ()));
        // While nothing can be written, no pass needs to be a full one.
        if self.paused_until.is_none() && self.writer.needs_full_pass() {
            self.full_pass_needed.store(true, Ordering::Release);
        }
    }

    fn note(&mut self, written: Result<(), WriteError>) {
        if let Err(error) = written {
            self.paused_until = Some(Instant::now() + PAUSE);
            (self.on_fault)(Fault::Lost);
            (self.on_fault)(Fault::Write(error));
        }
    }
}
