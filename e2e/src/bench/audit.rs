//! Requests counted from the apiserver's audit log, while that is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::identity::OPERATOR_USER;

/// The operator among the agents.
pub const SHED: &str = "shed";
/// The built-in Job controller among the agents.
pub const JOB_CONTROLLER: &str = "job-controller";
/// Requests of a client without a name: this program's.
const BENCH: &str = "bench";

/// Counted requests.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By agent, then `verb resource`; those that were refused have the HTTP status at the end.
    pub requests: BTreeMap<String, BTreeMap<String, u64>>,
    /// Writes to objects of the watched namespace.
    pub writes: u64,
}

/// Follows the audit log of a cluster of this machine.
pub struct AuditLog {
    path: PathBuf,
    reader: BufReader<File>,
    /// A line whose end is not written yet.
    part: String,
}

impl AuditLog {
    /// Opens the log next to a local cluster's kubeconfig, at its present end.
    pub fn at_end(kubeconfig: &Path) -> Result<Self> {
        let path = kubeconfig.with_file_name("audit.log");
        let mut reader = open(&path)?;
        reader.seek(SeekFrom::End(0))?;
        let part = String::new();
        Ok(Self { path, reader, part })
    }

    /// Counts what was written since the last call.
    pub fn count(&mut self, namespace: &str, tally: &mut Tally) -> Result<()> {
        self.read(|event| {
            tally.add(event, namespace);
            Ok(())
        })
    }

    /// Passes on what was written since the last call.
    ///
    /// # Errors
    /// If the log can't be read or has a line that is not an audit event, or as `take` says.
    pub fn read(&mut self, mut take: impl FnMut(&Event<'_>) -> Result<()>) -> Result<()> {
        loop {
            self.read_to_end(&mut take)?;
            if !self.is_rotated()? {
                return Ok(());
            }
            // Lines may have come before the log was renamed.
            self.read_to_end(&mut take)?;
            self.reader = open(&self.path)?;
        }
    }

    fn read_to_end(&mut self, take: &mut impl FnMut(&Event<'_>) -> Result<()>) -> Result<()> {
        while self.reader.read_line(&mut self.part)? > 0 {
            if self.part.ends_with('\n') {
                let event = serde_json::from_str(&self.part);
                let event: Event<'_> =
                    event.with_context(|| format!("a line of {}", self.path.display()))?;
                take(&event)?;
                self.part.clear();
            }
        }
        Ok(())
    }

    /// Whether the apiserver has begun another file.
    fn is_rotated(&self) -> Result<bool> {
        let own = self.reader.get_ref().metadata()?.ino();
        match std::fs::metadata(&self.path) {
            Ok(now) => Ok(now.ino() != own),
            // Renamed, and the next file is not there yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| self.path.display().to_string()),
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).with_context(|| {
        format!(
            "no audit log at {}, and requests are counted from it: use a cluster that e2e/cluster/cluster brought up",
            path.display()
        )
    })?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// The used fields of an audit event (audit.k8s.io/v1).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event<'l> {
    /// Whether the answer has begun or is complete.
    #[serde(borrow)]
    pub stage: Cow<'l, str>,
    /// As RBAC names it.
    #[serde(borrow)]
    pub verb: Cow<'l, str>,
    /// The client.
    #[serde(borrow)]
    pub user: User<'l>,
    #[serde(borrow, default)]
    user_agent: Cow<'l, str>,
    /// The object of the request.
    #[serde(borrow)]
    pub object_ref: Option<ObjectRef<'l>>,
    /// The answer.
    pub response_status: Option<ResponseStatus>,
    /// The body, where the policy records it.
    pub request_object: Option<Value>,
    /// When the apiserver received the request.
    #[serde(borrow)]
    pub request_received_timestamp: Cow<'l, str>,
    /// When the request came to this stage.
    #[serde(borrow, default)]
    pub stage_timestamp: Cow<'l, str>,
}

/// The client of a request.
#[derive(Deserialize)]
pub struct User<'l> {
    /// Its name.
    #[serde(borrow, default)]
    pub username: Cow<'l, str>,
}

/// The object of a request.
#[derive(Deserialize)]
pub struct ObjectRef<'l> {
    /// Plural of its kind.
    #[serde(borrow, default)]
    pub resource: Cow<'l, str>,
    /// Empty if the request is about the whole object.
    #[serde(borrow, default)]
    pub subresource: Cow<'l, str>,
    /// Empty if it has none.
    #[serde(borrow, default)]
    pub namespace: Cow<'l, str>,
    /// Empty if the request names none, as a list does.
    #[serde(borrow, default)]
    pub name: Cow<'l, str>,
}

/// The answer to a request.
#[derive(Deserialize)]
pub struct ResponseStatus {
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

impl Tally {
    fn add(&mut self, event: &Event<'_>, namespace: &str) {
        // A watch has an event at its start and one at its end; it counts at its start.
        let counted = match &*event.verb {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        let Some(object) = event.object_ref.as_ref().filter(|_| event.stage == counted) else {
            return;
        };
        let mut request = format!("{} {}", event.verb, object.resource);
        if !object.subresource.is_empty() {
            request = format!("{request}/{}", object.subresource);
        }
        let code = event.response_status.as_ref().map_or(0, |own| own.code);
        if code >= 300 {
            request = format!("{request} {code}");
        }
        self.writes += u64::from(is_write(&event.verb) && object.namespace == namespace);
        let agent = agent(&event.user.username, &event.user_agent);
        let own = self.requests.entry(agent).or_default();
        *own.entry(request).or_default() += 1;
    }
}

/// Whether a verb changes objects.
pub fn is_write(verb: &str) -> bool {
    !matches!(verb, "get" | "list" | "watch")
}

/// A short name of a client.
fn agent(user: &str, user_agent: &str) -> String {
    if user == OPERATOR_USER {
        return SHED.to_owned();
    }
    let account = user.strip_prefix("system:serviceaccount:kube-system:");
    let component = account.or_else(|| user.strip_prefix("system:"));
    // Administrators are distinguished by their user agents, such as kwok/v0.8.0 (linux/amd64).
    let program = user_agent.split('/').next().unwrap_or_default();
    match component.filter(|name| !name.contains(':')) {
        Some(name) => name.to_owned(),
        None if program.is_empty() => BENCH.to_owned(),
        None => program.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    fn line(user: &str, verb: &str, resource: [&str; 2], second: u32) -> String {
        let stage = if verb == "watch" {
            "ResponseStarted"
        } else {
            "ResponseComplete"
        };
        let mut event = json!({"stage": stage, "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource[0], "namespace": "n"}, "responseStatus": {"code": 200},
            "requestReceivedTimestamp": format!("2030-01-01T00:00:{second:02}.000000Z")});
        if !resource[1].is_empty() {
            event["objectRef"]["subresource"] = json!(resource[1]);
        }
        format!("{event}\n")
    }

    fn kubeconfig(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("shed-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("kubeconfig")
    }

    fn count(tally: &Tally, agent: &str, request: &str) -> u64 {
        let own = tally.requests.get(agent).and_then(|own| own.get(request));
        own.copied().unwrap_or(0)
    }

    #[test]
    fn a_missing_log_is_named_with_what_to_do() {
        let error = AuditLog::at_end(Path::new("/nowhere/kubeconfig"))
            .err()
            .unwrap();
        let said = format!("{error:#}");
        assert!(
            said.contains("/nowhere/audit.log") && said.contains("cluster"),
            "{said}"
        );
    }

    /// Lines may be there in part at first.
    #[test]
    fn requests_are_counted_by_agent_and_verb_across_a_rotation() {
        let kubeconfig = kubeconfig("audit");
        let path = kubeconfig.with_file_name("audit.log");
        std::fs::write(&path, line(OPERATOR_USER, "create", ["pods", ""], 1)).unwrap();
        let mut log = AuditLog::at_end(&kubeconfig).unwrap();
        let mut tally = Tally::default();
        let mut file = File::options().append(true).open(&path).unwrap();
        let whole = line(OPERATOR_USER, "patch", ["deadlinejobs", "status"], 2);
        let (begin, end) = whole.split_at(40);
        file.write_all(begin.as_bytes()).unwrap();
        log.count("n", &mut tally).unwrap();
        assert!(tally.requests.is_empty(), "half a line is no request");
        file.write_all(end.as_bytes()).unwrap();
        std::fs::rename(&path, kubeconfig.with_file_name("audit-old.log")).unwrap();
        let controller = "system:serviceaccount:kube-system:job-controller";
        let next = [
            line(controller, "create", ["pods", ""], 4),
            line(controller, "create", ["pods", ""], 3),
            line("system:kube-scheduler", "watch", ["pods", ""], 5),
            line("admin", "create", ["jobs", ""], 6),
        ];
        std::fs::write(&path, next.concat()).unwrap();
        log.count("n", &mut tally).unwrap();
        assert_eq!(count(&tally, SHED, "create pods"), 0, "before the begin");
        assert_eq!(count(&tally, SHED, "patch deadlinejobs/status"), 1);
        assert_eq!(count(&tally, JOB_CONTROLLER, "create pods"), 2);
        assert_eq!(count(&tally, "kube-scheduler", "watch pods"), 1);
        assert_eq!(count(&tally, BENCH, "create jobs"), 1);
        assert_eq!(tally.writes, 4);
        std::fs::remove_dir_all(kubeconfig.parent().unwrap()).unwrap();
    }

    #[test]
    fn clients_have_short_names() {
        assert_eq!(agent("admin", "kwok/v0.8.0 (linux/amd64)"), "kwok");
        assert_eq!(agent("system:apiserver", "kube-apiserver/v1"), "apiserver");
        let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
        assert_eq!(agent(collector, "x"), "generic-garbage-collector");
        let foreign = "system:serviceaccount:other:thing";
        assert_eq!(agent(foreign, "thing/1"), "thing");
    }
}
