//! No log contains the checkpoints of tasks.

use std::io;

use parking_lot::Mutex;
use shed_core::plan::Launch;
use shed_core::snapshot::ResumePoint;
use tracing_subscriber::fmt::MakeWriter;

use super::*;

const SECRET: &str = "https://store/run-7?signature=s3cret";

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock();
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Log {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        let log = self.0.lock();
        String::from_utf8(log.clone()).unwrap()
    }
}

/// A clone of the task that resumes at the checkpoint.
fn resumed() -> Move {
    let Move::Launch(clone) = launch(0, AttemptKind::Clone) else {
        panic!("no launch");
    };
    Move::Launch(Launch {
        resume: Some(ResumePoint {
            progress: 0.4,
            checkpoint: SECRET.into(),
        }),
        ..clone
    })
}

#[tokio::test]
async fn no_checkpoint_is_logged() {
    let log = Log::default();
    // With one subscriber alone `tracing` asks the thread that reaches an event first whether it is of
    // interest, and tests on other threads have no subscriber.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let progress = "progress: {file: {}}, resume: Checkpoint";
    let (api, process) = two_running(progress).await;
    let says = format!(r#"{{"progress":0.4,"checkpoint":"{SECRET}"}}"#);
    api.world.lock().answers.insert((0, 0), says);
    process.plan(&api.job(), vec![resumed()]);
    process.look(&api).await.unwrap();
    // A pod that can't be created, a conflict, and a write that fails.
    for refused in ["POST pod", "PUT job"] {
        api.refuse(refused, 500, "InternalError", "etcd is away");
        process.plan(&api.job(), vec![resumed()]);
        let _ = process.look(&api).await;
    }
    api.script(|_| Fate::Served);
    api.exit((0, 0), 1, clock::now());
    process.look(&api).await.unwrap();
    let ledger = serde_json::to_string(&api.job().status).unwrap();
    assert!(ledger.contains(SECRET), "it was there to be logged");
    let text = log.text();
    assert!(text.contains("recorded") && text.contains(&format!("{} bytes", SECRET.len())));
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn what_is_printed_for_debugging_has_no_checkpoint() {
    let point = ResumePoint {
        progress: 0.4,
        checkpoint: SECRET.into(),
    };
    let report = shed_agent::Report::new(0.4, Some(SECRET.to_owned())).unwrap();
    for text in [
        format!("{point:?}"),
        format!("{point:#?}"),
        format!("{report:?}"),
    ] {
        assert!(text.contains("36") && !text.contains("s3cret"), "{text}");
    }
}
