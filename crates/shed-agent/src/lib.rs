//! The sidecar of a task: serves the task's progress and writes its resume point. The
//! operator uses the parsing half ([`wire`], [`report`], [`Series`]); neither half knows
//! Kubernetes.
//!
//! # The contract with a task
//!
//! A task is any program. It sees these environment variables:
//!
//! | Variable | Meaning |
//! |---|---|
//! | `SHED_PROGRESS_FILE` | The task writes its progress here. Set with `spec.progress.file`. |
//! | `SHED_RESUME_FILE` | If this file exists, the task should go on from the point in it. |
//! | `SHED_ATTEMPT_ID` | Names this attempt; no other attempt of any job has the same. |
//!
//! ## Reporting
//!
//! The file holds the newest report only, in one of three forms, of at most 4096 bytes:
//!
//! ```text
//! 0.42
//! 17/40
//! {"progress":0.42,"checkpoint":"s3://bucket/run-7/step-1200"}
//! ```
//!
//! - Progress is the done part of the **whole task**, from 0 to 1, also in an attempt that was
//!   resumed: one that resumes at 0.4 reports 0.4 next, not 0.
//! - It should be roughly in proportion to time. Once a second is more than enough.
//! - `checkpoint` is any text of up to 256 bytes that lets another copy of the task go on *from
//!   this progress*; it must be readable from another node. It may be left out of a report, and
//!   the last one with its own progress stays valid. In JSON, `progress` may be `"17/40"` and
//!   other fields are ignored.
//! - Write the file in one piece: to another name in the same folder, then rename. A half
//!   written `17/40` may read as `1`, which is "done". A missing or empty file means "no report
//!   yet", never zero.
//! - It must be a regular file, not a link, and readable by other users (`umask 022`).
//! - A value lower than before is ignored, and so is anything that is not a report; both are
//!   counted by reason in the operator's metric.
//!
//! A task with an HTTP server of its own answers a GET with the same content instead
//! (`spec.progress.httpGet`). It should send the header `Shed-Attempt: $SHED_ATTEMPT_ID`,
//! because pod addresses are reused; an answer that names another attempt is not believed.
//!
//! A task that Prometheus scrapes anyway names the metric (`spec.progress.metric`): a gauge from
//! 0 to 1, or a counter and the metric that holds its total. There must be one series of each; a
//! page that does not have it yet means "no report yet". [`metric`] has the details.
//!
//! ## Resuming
//!
//! The resume file is complete before the task starts. It is one line of JSON, `checkpoint`
//! absent without one:
//!
//! ```text
//! {"progress":0.4,"checkpoint":"s3://bucket/run-7/step-1200"}
//! ```
//!
//! `$SHED_RESUME_FILE.checkpoint` holds the bare text of the checkpoint, without a line end, for
//! programs that do not read JSON. It is absent if there is no checkpoint. Without a resume
//! point neither file exists.
//!
//! ## A shell script
//!
//! ```sh
//! first=1
//! if [ -f "$SHED_RESUME_FILE.checkpoint" ]; then
//!     first=$(cat "$SHED_RESUME_FILE.checkpoint")
//! fi
//! for i in $(seq "$first" 40); do
//!     work "$i"
//!     echo "{\"progress\":\"$i/40\",\"checkpoint\":\"$((i + 1))\"}" > "$SHED_PROGRESS_FILE.new"
//!     mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
//! done
//! ```
//!
//! ## Python
//!
//! ```python
//! import json, os
//!
//! def resume_point():
//!     try:
//!         with open(os.environ["SHED_RESUME_FILE"]) as file:
//!             return json.load(file)
//!     except (KeyError, FileNotFoundError):
//!         return {"progress": 0.0}
//!
//! def report(progress, checkpoint=None):
//!     path = os.environ["SHED_PROGRESS_FILE"]
//!     with open(path + ".new", "w") as file:
//!         json.dump({"progress": progress, "checkpoint": checkpoint}, file)
//!     os.replace(path + ".new", path)
//! ```
//!
//! ## Go
//!
//! ```go
//! type point struct {
//!     Progress   float64 `json:"progress"`
//!     Checkpoint string  `json:"checkpoint,omitempty"`
//! }
//!
//! func resumePoint() (p point, err error) {
//!     content, err := os.ReadFile(os.Getenv("SHED_RESUME_FILE"))
//!     if errors.Is(err, fs.ErrNotExist) {
//!         return p, nil
//!     } else if err != nil {
//!         return p, err
//!     }
//!     return p, json.Unmarshal(content, &p)
//! }
//!
//! func report(p point) error {
//!     path := os.Getenv("SHED_PROGRESS_FILE")
//!     content, err := json.Marshal(p)
//!     if err != nil {
//!         return err
//!     }
//!     if err := os.WriteFile(path+".new", content, 0o644); err != nil {
//!         return err
//!     }
//!     return os.Rename(path+".new", path)
//! }
//! ```
//!
//! # The contract with the operator
//!
//! The agent reads `SHED_PROGRESS_FILE`, `SHED_RESUME_FILE`, `SHED_RESUME` (the resume point,
//! written by [`resume::to_env_value`]; absent without one), `SHED_ATTEMPT_UID` (from the
//! downward API) and `SHED_AGENT_PORT` (default 9247). The two files lie directly in a volume
//! that the agent shares with the task. `GET /healthz` is 200 once the resume file is written,
//! hence the sidecar's startup probe. `GET /progress` is read by [`wire::read_reply`]; 503 means
//! that the volume did not answer in time.
//!
//! With `SHED_BIN` (where to put this program for the task) the agent is also the attempt's
//! [`fence`]: the task asks at `POST 127.0.0.1:9248/commit`, the operator polls `GET /fence` and
//! leaves a grant, signed with the key that belongs to `SHED_OPERATOR_KEY`, at `POST /fence`.
//!
//! With `SHED_REPLY_KEY` the answers to a GET with the header `shed-nonce` carry the header `shed-code`, by which the
//! operator knows them ([`reply`]).
//!
//! With `SHED_STOP_FILE` (`resume: Range`) the answer to `GET /progress` also has a nonce, and
//! [`stop`] takes the operator's signed word on where the task stops at `POST /stop-at`. When it is
//! asked to end, after the task, the agent leaves the last report as its termination message.

pub mod agent;
pub mod commit;
pub mod config;
pub mod connection;
pub mod fence;
pub mod metric;
mod progress_file;
pub mod reply;
pub mod report;
pub mod resume;
pub mod series;
pub mod signed;
pub mod stop;
pub mod wire;

pub use agent::{Agent, HEALTH_PATH, run, run_from_env, write_resume_only};
pub use config::{
    ATTEMPT_UID_VAR, AgentConfig, BIN_VAR, FenceConfig, HEALTH_PORT_DEFAULT, HEALTH_PORT_VAR,
    PORT_DEFAULT, PORT_VAR, PROGRESS_FILE_VAR, RESUME_FILE_VAR, RESUME_VAR, Resume, STOP_FILE_VAR,
    StopConfig,
};
pub use metric::{Metric, parse_metric};
pub use report::{Report, ReportError, Units, parse_report};
pub use series::{Observed, Series};
pub use wire::{WireError, read_endpoint, read_metrics, read_reply};
