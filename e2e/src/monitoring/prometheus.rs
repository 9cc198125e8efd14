//! A Prometheus of this machine that scrapes one operator each second, and its answers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Request;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::command::in_background;
use crate::host_operator::free_address;
use crate::wait::{self, Seen};

/// How often Prometheus scrapes and evaluates, in seconds.
const PERIOD: &str = "1s";
/// How long it may take to start.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Labels that a ServiceMonitor gives to the operator's series.
pub const NAMESPACE: &str = "shed-system";

/// A span of time that is queried, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// A running Prometheus; it ends with this value.
pub struct Prometheus {
    client: Client,
    _child: Child,
}

impl Prometheus {
    /// Starts it with a rule file, and waits until it is ready. `operator` is what it scrapes.
    pub async fn start(
        program: &Path,
        folder: &Path,
        rules: &str,
        operator: SocketAddr,
    ) -> Result<Self> {
        std::fs::write(folder.join("rules.yaml"), rules)?;
        let configuration = folder.join("prometheus.yaml");
        std::fs::write(&configuration, configured(operator))?;
        let (address, log) = (free_address()?, folder.join("prometheus.log"));
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        let child = in_background(&mut command, std::fs::File::create(&log)?)
            .with_context(|| format!("--prometheus {}", program.display()))?;
        let client = Client::try_from(Config::new(format!("http://{address}").parse()?))?;
        let prometheus = Self {
            client,
            _child: child,
        };
        let what = format!("Prometheus to be ready (its log: {})", log.display());
        wait::until(&what, READY_WITHIN, async || {
            prometheus.text("/-/ready").await.map(|_| Seen::Ready(()))
        })
        .await?;
        Ok(prometheus)
    }

    async fn text(&self, path: &str) -> Result<String> {
        let request = Request::get(path).body(Vec::new())?;
        Ok(self.client.request_text(request).await?)
    }

    async fn data(&self, path: &str) -> Result<Value> {
        let answer: Value = serde_json::from_str(&self.text(path).await?)?;
        ensure!(answer["status"] == "success", "Prometheus: {answer}");
        Ok(answer["data"].clone())
    }

    /// Alerts that fire.
    pub async fn firing(&self) -> Result<BTreeSet<String>> {
        let data = self.data("/api/v1/rules").await?;
        let groups = data["groups"].as_array().into_iter().flatten();
        let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
        let mut firing = BTreeSet::new();
        for rule in rules {
            let name = rule["name"].as_str().unwrap_or_default();
            ensure!(
                rule["health"] != "err",
                "rule {name}: {}",
                rule["lastError"]
            );
            if rule["state"] == "firing" {
                firing.insert(name.to_owned());
            }
        }
        Ok(firing)
    }

    /// Whether a query returns a number at one time.
    pub async fn instant(&self, query: &str, at: f64) -> Result<bool> {
        let path = format!("/api/v1/query?time={at:.3}&query={}", encoded(query));
        Ok(has_number(&self.data(&path).await?))
    }

    /// Whether a query returns a number over a span, each `step` seconds.
    pub async fn range(&self, query: &str, span: Span, step: u64) -> Result<bool> {
        let (Span { from, to }, query) = (span, encoded(query));
        let path =
            format!("/api/v1/query_range?start={from:.3}&end={to:.3}&step={step}&query={query}");
        Ok(has_number(&self.data(&path).await?))
    }

    /// The values of a label of series in a span.
    pub async fn label_values(
        &self,
        selector: &str,
        label: &str,
        span: Span,
    ) -> Result<Vec<String>> {
        let (Span { from, to }, selector) = (span, encoded(selector));
        let path =
            format!("/api/v1/label/{label}/values?start={from:.3}&end={to:.3}&match[]={selector}",);
        let path = path.replace("[]", "%5B%5D");
        Ok(serde_json::from_value(self.data(&path).await?)?)
    }
}

fn configured(operator: SocketAddr) -> String {
    json!({
        "global": {"scrape_interval": PERIOD, "scrape_timeout": PERIOD, "evaluation_interval": PERIOD},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{
            "job_name": "shed",
            "static_configs": [{
                "targets": [operator.to_string()],
                "labels": {"namespace": NAMESPACE, "pod": "shed-0"},
            }],
        }],
    })
    .to_string()
}

/// Text for a query of a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let byte = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Whether any sample of an answer is a number.
fn has_number(data: &Value) -> bool {
    let result = &data["result"];
    if data["resultType"] == "scalar" {
        return is_number(result);
    }
    let mut series = result.as_array().into_iter().flatten();
    series.any(|series| match &series["values"] {
        Value::Array(samples) => samples.iter().any(is_number),
        _ => is_number(&series["value"]),
    })
}

/// Whether a sample, whose value is text, is neither NaN nor infinite.
fn is_number(sample: &Value) -> bool {
    let value = sample[1].as_str().and_then(|text| text.parse().ok());
    value.is_some_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_result_is_read() {
        let scalar = |value| json!({"resultType": "scalar", "result": [1.5, value]});
        assert!(has_number(&scalar("2")));
        assert!(!has_number(&scalar("+Inf")));
        let vector = json!({"resultType": "vector", "result": [
            {"metric": {"a": "b"}, "value": [1, "NaN"]}]});
        assert!(!has_number(&vector));
        let matrix = json!({"resultType": "matrix", "result": [
            {"metric": {}, "values": [[1, "+Inf"], [2, "0"]]}]});
        assert!(has_number(&matrix));
        let empty = json!({"resultType": "vector", "result": []});
        assert!(!has_number(&empty));
    }

    #[test]
    fn queries_are_encoded_for_a_url() {
        assert_eq!(encoded("a{b=\"c\"} > 1"), "a%7Bb%3D%22c%22%7D%20%3E%201");
    }
}
