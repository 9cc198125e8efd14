//! Asks the leading operator, through a port-forward to its loopback listener. A user who may forward ports in shed's
//! namespace sees the jobs of all namespaces.

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::client::UpgradeConnectionError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::Access;
use crate::connection::Session;
use crate::lease;

/// Port of the listener.
const PORT: u16 = 9444;
/// The leader answers within this time.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const ANSWER_MAX: usize = 256 << 20;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoOperator(String);

/// Gets a path such as `/v1/jobs` from the leader.
pub async fn get<T: DeserializeOwned>(session: &Session, path: &str) -> anyhow::Result<T> {
    let pod = leading_pod(session).await?;
    let asked = tokio::time::timeout(PATIENCE, ask(session, &pod, path)).await;
    let silent = || {
        format!(
            "the operator {pod} does not answer within {}s",
            PATIENCE.as_secs()
        )
    };
    let (status, body) = asked.with_context(silent)??;
    if !status.is_success() {
        let error: Option<Value> = serde_json::from_slice(&body).ok();
        let text = error.and_then(|error| error.get("error")?.as_str().map(str::to_owned));
        let text = text.unwrap_or_else(|| status.to_string());
        bail!("the operator answered: {text}");
    }
    let answer = serde_json::from_slice(&body);
    answer.context("the operator's version differs too much from this program's")
}

/// The pod that holds the Lease.
pub async fn leading_pod(session: &Session) -> anyhow::Result<String> {
    let lease = lease::read(session).await?;
    let pod = lease.holder().map(|holder| pod_of(holder).to_owned());
    let (namespace, name) = (&session.options.shed_namespace, &session.options.lease_name);
    Ok(pod.map_err(|why| {
        NoOperator(format!(
            "no operator leads: the Lease {namespace}/{name} {why}. Check that shed runs, or set --shed-namespace \
             and --lease-name"
        ))
    })?)
}

/// The pod in a holder's identity, which is the pod's name, an underscore, and the process.
fn pod_of(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(pod, _)| pod)
}

async fn ask(
    session: &Session,
    pod: &str,
    path: &str,
) -> anyhow::Result<(http::StatusCode, Bytes)> {
    let namespace = &session.options.shed_namespace;
    let pods: Api<Pod> = Api::namespaced(session.client.clone(), namespace);
    let forwarded = pods.portforward(pod, &[PORT]).await;
    let mut forward = forwarded.map_err(|error| refused_forward(error, namespace, pod))?;
    let stream = forward
        .take_stream(PORT)
        .context("no stream was forwarded")?;
    let refused = forward.take_error(PORT);
    let refused = refused.context("no stream was forwarded")?;
    let no_listener = || {
        anyhow!(
            "the operator {pod} does not listen on port {PORT}. An administrator can let it answer: set the value \
             askAddress=127.0.0.1:9444 of the chart"
        )
    };
    let answered = tokio::select! {
        answered = exchange(stream, path) => answered,
        Some(_) = refused => return Err(no_listener()),
    };
    // A connection that ends without an answer is how a kubelet reports a closed port to some clients.
    answered.map_err(|error| match error.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_incomplete_message() => no_listener(),
        _ => error.context("cannot ask the operator"),
    })
}

/// Why no port is forwarded.
fn refused_forward(error: kube::Error, namespace: &str, pod: &str) -> anyhow::Error {
    let (code, message) = match &error {
        kube::Error::Api(status) => (status.code, status.message.as_str()),
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) => {
            (status.as_u16(), "")
        }
        _ => (0, ""),
    };
    // Kubernetes before 1.35 asks for `get`.
    let is_older = message.contains("cannot get");
    let verb = if is_older { "get" } else { "create" };
    let access = Access::new(verb, "pods/portforward", Some(namespace));
    match code {
        403 => anyhow!(access.forbidden()),
        404 => anyhow!(
            "the pod {namespace}/{pod} holds shed's Lease and does not exist: the operator runs outside of the cluster, or \
             it has just ended"
        ),
        _ => access.explain(error),
    }
}

async fn exchange<S>(stream: S, path: &str) -> anyhow::Result<(http::StatusCode, Bytes)>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = http::Request::get(path)
        .header(http::header::HOST, "localhost")
        .header(http::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let (status, body) = (response.status(), response.into_body());
    let body = http_body_util::Limited::new(body, ANSWER_MAX)
        .collect()
        .await;
    let body = body.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
    driver.abort();
    Ok((status, body))
}
