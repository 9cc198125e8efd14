//! Asks the leading operator, through a port-forward to its loopback listener. A user who may forward ports in shed's
//! namespace sees the jobs of all namespaces.

#[cfg(test)]
mod tests;

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::client::UpgradeConnectionError;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::Access;
use crate::connection::Connection;
use crate::lease;

/// Port of the listener.
const PORT: u16 = 9444;
/// The leader answers within this time.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const ANSWER_MAX: usize = 256 << 20;

/// Why the leader was not asked.
#[derive(Debug, thiserror::Error)]
pub enum LeaderError {
    /// The user has not the right.
    #[error("{0}")]
    Forbidden(String),
    /// No operator leads.
    #[error("{0}")]
    NoOperator(String),
    /// The leader has no listener.
    #[error(
        "the operator {0} does not listen on port {PORT}. An administrator can let it answer: set the value \
         askAddress=127.0.0.1:9444 of the chart"
    )]
    NoListener(String),
    /// The leader answered with an error, such as an invalid parameter.
    #[error("the operator answered: {0}")]
    Refused(String),
    /// Anything else.
    #[error("cannot ask the operator: {0:#}")]
    Other(anyhow::Error),
}

/// Gets a path such as `/v1/jobs` from the leader.
pub async fn get<T: DeserializeOwned>(
    client: &Client,
    connection: &Connection,
    path: &str,
) -> Result<T, LeaderError> {
    let pod = leading_pod(client, connection).await?;
    let asked = ask(client, &connection.shed_namespace, &pod, path);
    let (status, body) = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answered) => answered?,
        Err(_) => {
            let silence = anyhow::anyhow!("{pod} does not answer within {}s", PATIENCE.as_secs());
            return Err(LeaderError::Other(silence));
        }
    };
    if !status.is_success() {
        let error: Option<Value> = serde_json::from_slice(&body).ok();
        let text = error.and_then(|error| error.get("error")?.as_str().map(str::to_owned));
        return Err(LeaderError::Refused(
            text.unwrap_or_else(|| status.to_string()),
        ));
    }
    serde_json::from_slice(&body).map_err(|error| {
        let other = anyhow::Error::from(error);
        LeaderError::Other(other.context("its version differs too much from this program's"))
    })
}

/// The pod that holds the Lease.
pub async fn leading_pod(client: &Client, connection: &Connection) -> Result<String, LeaderError> {
    let (namespace, name) = (&connection.shed_namespace, &connection.lease_name);
    let access = lease::access(connection);
    let lease = match lease::read(client, connection).await {
        Ok(lease) => lease,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            return Err(LeaderError::Forbidden(access.forbidden()));
        }
        Err(error) => return Err(LeaderError::Other(access.explain(error))),
    };
    let pod = lease.holder().map(|holder| pod_of(holder).to_owned());
    pod.map_err(|why| {
        LeaderError::NoOperator(format!(
            "no operator leads: the Lease {namespace}/{name} {why}. Check that shed runs, or set --shed-namespace \
             and --lease-name"
        ))
    })
}

/// The pod in a holder's identity, which is the pod's name, an underscore, and the process.
fn pod_of(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(pod, _)| pod)
}

async fn ask(
    client: &Client,
    namespace: &str,
    pod: &str,
    path: &str,
) -> Result<(http::StatusCode, Bytes), LeaderError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let forwarded = pods.portforward(pod, &[PORT]).await;
    let mut forward = forwarded.map_err(|error| refused_forward(error, namespace, pod))?;
    let (stream, refused) = (forward.take_stream(PORT), forward.take_error(PORT));
    let (Some(stream), Some(refused)) = (stream, refused) else {
        return Err(LeaderError::Other(anyhow::anyhow!(
            "no stream was forwarded"
        )));
    };
    let answered = tokio::select! {
        answered = exchange(stream, path) => answered,
        Some(_) = refused => return Err(LeaderError::NoListener(pod.to_owned())),
    };
    // A connection that ends without an answer is how a kubelet reports a closed port to some clients.
    answered.map_err(|error| match error.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_incomplete_message() => LeaderError::NoListener(pod.to_owned()),
        _ => LeaderError::Other(error),
    })
}

/// Why no port is forwarded.
fn refused_forward(error: kube::Error, namespace: &str, pod: &str) -> LeaderError {
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
    let access = Access::new(verb, "pods/portforward", namespace);
    match code {
        403 => LeaderError::Forbidden(access.forbidden()),
        404 => LeaderError::NoOperator(format!(
            "the pod {namespace}/{pod} holds shed's Lease and does not exist: the operator runs outside of the cluster, or \
             it has just ended"
        )),
        _ => LeaderError::Other(access.explain(error)),
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
