//! The agent's settings. They come from the environment that the operator writes into the pod.

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::commit::COMMIT_PORT;
use crate::reply::{REPLY_KEY_VAR, ReplyKey};
use crate::report::{Report, parse_report};
use crate::signed::{OPERATOR_KEY_VAR, VerifyingKey};

/// Where the task writes its progress.
pub const PROGRESS_FILE_VAR: &str = "SHED_PROGRESS_FILE";
/// Where the task finds its resume point.
pub const RESUME_FILE_VAR: &str = "SHED_RESUME_FILE";
/// The resume point itself, for the agent; [`crate::resume::to_env_value`] writes it.
pub const RESUME_VAR: &str = "SHED_RESUME";
/// The pod's uid, from the downward API.
pub const ATTEMPT_UID_VAR: &str = "SHED_ATTEMPT_UID";
/// The port that the agent listens on.
pub const PORT_VAR: &str = "SHED_AGENT_PORT";
/// The port on which the agent answers the kubelet's startup probe, and nothing else.
pub const HEALTH_PORT_VAR: &str = "SHED_AGENT_HEALTH_PORT";

/// Where the agent puts its own program for the task, which asks with it before it publishes.
pub const BIN_VAR: &str = "SHED_BIN";

/// Where the agent writes the unit at which the task stops.
pub const STOP_FILE_VAR: &str = "SHED_STOP_FILE";

/// The default of `terminationMessagePath`.
const TERMINATION_LOG: &str = "/dev/termination-log";

pub const PORT_DEFAULT: u16 = 9247;
/// Apart from the port for reports, so that strangers there can't keep a task from starting.
pub const HEALTH_PORT_DEFAULT: u16 = 9249;

/// A resume point and where to put it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    pub file: PathBuf,
    pub point: Report,
}

impl Resume {
    /// `None` if the attempt starts from the beginning.
    pub fn from_env() -> anyhow::Result<Option<Self>> {
        Self::from_vars(read_env)
    }

    pub fn from_vars(
        var: impl Fn(&str) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(content) = var(RESUME_VAR)? else {
            return Ok(None);
        };
        let point = parse_report(content.as_bytes()).with_context(|| RESUME_VAR.to_owned())?;
        let Some(point) = point else {
            return Ok(None);
        };
        let file = required(&var, RESUME_FILE_VAR)?.into();
        Ok(Some(Resume { file, point }))
    }
}

/// Settings of the commit fence; only tasks of jobs with `idempotency: Fenced` have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceConfig {
    /// By which the operator is known.
    pub key: VerifyingKey,
    /// Where the task finds this program.
    pub bin: PathBuf,
    /// Where the task asks; 0 in tests.
    pub port: u16,
}

impl FenceConfig {
    fn from_vars(
        var: impl Fn(&str) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(bin) = var(BIN_VAR)? else {
            return Ok(None);
        };
        let key = required(&var, OPERATOR_KEY_VAR)?;
        Ok(Some(Self {
            key: VerifyingKey::parse(&key).context(OPERATOR_KEY_VAR)?,
            bin: bin.into(),
            port: COMMIT_PORT,
        }))
    }
}

/// Settings that stop a task of a job with `resume: Range` before the end of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopConfig {
    /// By which the operator is known.
    pub key: VerifyingKey,
    /// Where the task finds the unit at which it stops.
    pub file: PathBuf,
    /// Where the kubelet reads the agent's last word.
    pub last_word: PathBuf,
}

impl StopConfig {
    fn from_vars(
        var: impl Fn(&str) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(file) = var(STOP_FILE_VAR)? else {
            return Ok(None);
        };
        let key = required(&var, OPERATOR_KEY_VAR)?;
        Ok(Some(Self {
            key: VerifyingKey::parse(&key).context(OPERATOR_KEY_VAR)?,
            file: file.into(),
            last_word: TERMINATION_LOG.into(),
        }))
    }
}

/// Everything that the agent needs to serve one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    pub attempt_uid: String,
    pub progress_file: PathBuf,
    pub port: u16,
    pub health_port: u16,
    pub resume: Option<Resume>,
    /// By which the operator knows the agent's answers.
    pub reply_key: Option<ReplyKey>,
    pub fence: Option<FenceConfig>,
    pub stop: Option<StopConfig>,
}

impl AgentConfig {
    pub fn from_env() -> anyhow::Result<Self> {
        Self::from_vars(read_env)
    }

    pub fn from_vars(var: impl Fn(&str) -> anyhow::Result<Option<String>>) -> anyhow::Result<Self> {
        let reply_key = var(REPLY_KEY_VAR)?.map(|key| ReplyKey::parse(&key));
        Ok(AgentConfig {
            attempt_uid: required(&var, ATTEMPT_UID_VAR)?,
            progress_file: required(&var, PROGRESS_FILE_VAR)?.into(),
            port: port(&var, PORT_VAR, PORT_DEFAULT)?,
            health_port: port(&var, HEALTH_PORT_VAR, HEALTH_PORT_DEFAULT)?,
            resume: Resume::from_vars(&var)?,
            reply_key: reply_key.transpose().context(REPLY_KEY_VAR)?,
            fence: FenceConfig::from_vars(&var)?,
            stop: StopConfig::from_vars(&var)?,
        })
    }
}

fn port(
    var: impl Fn(&str) -> anyhow::Result<Option<String>>,
    name: &str,
    default: u16,
) -> anyhow::Result<u16> {
    match var(name)? {
        Some(text) => text.parse().with_context(|| format!("{name}={text}")),
        None => Ok(default),
    }
}

fn required(
    var: impl Fn(&str) -> anyhow::Result<Option<String>>,
    name: &str,
) -> anyhow::Result<String> {
    var(name)?.with_context(|| format!("{name} is not set"))
}

/// An empty variable counts as unset: a pod template cannot always leave one out.
fn read_env(name: &str) -> anyhow::Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => bail!("{name} is not UTF-8 text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(vars: &[(&str, &str)]) -> Result<AgentConfig, String> {
        let var = |name: &str| {
            let found = vars.iter().find(|(key, _)| *key == name);
            Ok(found.map(|(_, value)| (*value).to_owned()))
        };
        AgentConfig::from_vars(var).map_err(|error| format!("{error:#}"))
    }

    const UID: (&str, &str) = (ATTEMPT_UID_VAR, "uid-1");
    const PROGRESS: (&str, &str) = (PROGRESS_FILE_VAR, "/shed/progress");
    const RESUME: (&str, &str) = (RESUME_FILE_VAR, "/shed/resume");

    #[test]
    fn the_port_has_a_default_and_the_resume_point_may_be_absent() {
        let config = config(&[UID, PROGRESS, RESUME]).unwrap();
        assert_eq!((config.port, config.health_port), (9247, 9249));
        assert_eq!(config.resume, None);
        assert_eq!(config.attempt_uid, "uid-1");
    }

    #[test]
    fn a_resume_point_is_read() {
        let point = (RESUME_VAR, r#"{"progress":0.4,"checkpoint":"c"}"#);
        let config = config(&[UID, PROGRESS, RESUME, point, (PORT_VAR, "81")]).unwrap();
        let resume = config.resume.unwrap();
        assert_eq!(resume.point, Report::new(0.4, Some("c".into())).unwrap());
        assert_eq!(config.port, 81);
    }

    #[test]
    fn a_missing_or_bad_variable_is_named() {
        assert!(config(&[PROGRESS]).unwrap_err().contains(ATTEMPT_UID_VAR));
        assert!(config(&[UID]).unwrap_err().contains(PROGRESS_FILE_VAR));
        let bad_port = config(&[UID, PROGRESS, (PORT_VAR, "x")]);
        assert!(bad_port.unwrap_err().contains(PORT_VAR));
        let bad_port = config(&[UID, PROGRESS, (HEALTH_PORT_VAR, "70000")]);
        assert!(bad_port.unwrap_err().contains(HEALTH_PORT_VAR));
        let bad_point = config(&[UID, PROGRESS, RESUME, (RESUME_VAR, "7")]);
        assert!(bad_point.unwrap_err().contains("SHED_RESUME: "));
        let no_file = config(&[UID, PROGRESS, (RESUME_VAR, "0.4")]);
        assert!(no_file.unwrap_err().contains(RESUME_FILE_VAR));
        let no_key = config(&[UID, PROGRESS, (STOP_FILE_VAR, "/shed/stop")]);
        assert!(no_key.unwrap_err().contains(OPERATOR_KEY_VAR));
        let no_key = config(&[UID, PROGRESS, (BIN_VAR, "/shed/shed")]);
        assert!(no_key.unwrap_err().contains(OPERATOR_KEY_VAR));
    }
}
