//! The sidecar beside a task.
