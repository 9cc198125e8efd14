//! The live page as visitors of two namespaces see it, through its Service.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{DeadlineJob, LABEL_LEADER};
use shed_e2e::cluster::{OPERATOR_NAMESPACE, RELEASE};
use shed_e2e::jobs::{Job, manifest, shell};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// The leader labels its pod, and the Service follows.
const LABELLED: Duration = Duration::from_secs(60);
/// The planner and the caches of rights follow.
const SHOWN: Duration = Duration::from_secs(40);

/// An answer of the page.
struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

/// Sends a request through the apiserver's proxy to the Service of the page.
async fn send(world: &World, path: &str, cookie: &str, form: Option<String>) -> Result<Answer> {
    let service = format!("https:{RELEASE}-page:page");
    let url = format!("/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/{service}/proxy{path}");
    let request = Request::builder().uri(url).header("cookie", cookie);
    let request = match form {
        None => request.method("GET").body(Body::empty())?,
        Some(form) => request
            .method("POST")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(Body::from(form.into_bytes()))?,
    };
    let (parts, body) = world.cluster.client().send(request).await?.into_parts();
    let text = match path.starts_with("/api/events") && parts.status.is_success() {
        true => first_events(body).await?,
        false => String::from_utf8(body.collect_bytes().await?.to_vec())?,
    };
    Ok(Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text,
    })
}

/// The events of the first look, which ends with the nodes.
async fn first_events(mut body: Body) -> Result<String> {
    let mut text = String::new();
    let read = async {
        while !text.contains("event: nodes") {
            let frame = body.frame().await.context("the stream ended")??;
            let bytes = frame.into_data().unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SHOWN, read)
        .await
        .context("no event of nodes")??;
    Ok(text)
}

/// A ServiceAccount, its token, and the cookie of its session.
async fn log_in(world: &World, namespace: &str, name: &str) -> Result<String> {
    world
        .kubectl(&["create", "serviceaccount", name, "-n", namespace])
        .await?;
    let token = world
        .kubectl(&["create", "token", name, "-n", namespace])
        .await?;
    let form = format!("token={}", token.trim());
    let answer = wait::until("the login", LABELLED, async || {
        let answer = send(world, "/login", "", Some(form.clone())).await?;
        let is_in = answer.status == 204;
        let why = format!("{} {}", answer.status, answer.text);
        Ok(Seen::from_option(is_in.then_some(answer), || why))
    })
    .await?;
    let cookie = answer.headers.get("set-cookie").context("no cookie")?;
    let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
    ensure!(cookie.starts_with("__Host-shed="), "{cookie}");
    Ok(cookie.to_owned())
}

async fn may_view(world: &World, namespace: &str, name: &str) -> Result<()> {
    let account = format!("--serviceaccount={namespace}:{name}");
    let binding = [
        "create",
        "rolebinding",
        name,
        "--clusterrole=view",
        &account,
    ];
    let binding = [&binding[..], &["-n", namespace]].concat();
    world.kubectl(&binding).await.map(drop)
}

/// One pod has the label: that of the holder of the Lease.
async fn leader_is_labelled(world: &World) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.cluster.client(), OPERATOR_NAMESPACE);
    let labelled = ListParams::default().labels(&format!("{LABEL_LEADER}=true"));
    wait::until("the label of the leader", LABELLED, async || {
        let holder = world.operator.holder().await?.unwrap_or_default();
        let holder = holder.split('_').next().unwrap_or_default().to_owned();
        let pods = pods.list(&labelled).await?.items;
        let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        let is_it = names == [holder.clone()];
        Ok(Seen::from_option(is_it.then_some(()), || {
            format!("{holder} leads, {names:?} have the label")
        }))
    })
    .await
}

/// The jobs of a list.
fn listed(text: &str) -> Result<(Vec<String>, Value)> {
    let list: Value = serde_json::from_str(text)?;
    let jobs = list["jobs"].as_array().context("no jobs")?;
    let name = |job: &Value| job["name"].as_str().unwrap_or_default().to_owned();
    let names = jobs.iter().map(name).collect();
    Ok((names, list))
}

async fn visit(world: &World, other: &str) -> Result<()> {
    leader_is_labelled(world).await?;
    let own = world.namespace.as_str();
    let template = shell("sleep 30");
    Job::submit(world, "mine", json!({"template": template.clone()})).await?;
    let theirs = manifest("theirs", &json!({"template": template}));
    let theirs: DeadlineJob = serde_json::from_value(theirs)?;
    let others: Api<DeadlineJob> = Api::namespaced(world.cluster.client(), other);
    others.create(&PostParams::default(), &theirs).await?;
    let viewer = log_in(world, own, "viewer").await?;
    let outsider = log_in(world, other, "outsider").await?;
    may_view(world, own, "viewer").await?;
    wait::until("the own job in the list", SHOWN, async || {
        let answer = send(world, "/api/jobs", &viewer, None).await?;
        let (names, list) = listed(&answer.text)?;
        let is_alone =
            names == ["mine"] && list["total"] == 1 && list["namespaces"] == json!([own]);
        Ok(Seen::from_option(is_alone.then_some(()), || answer.text))
    })
    .await?;
    let answer = send(world, "/api/jobs", &outsider, None).await?;
    let (names, _) = listed(&answer.text)?;
    ensure!(names.is_empty(), "without a right: {names:?}");
    let job = send(world, &format!("/api/jobs/{own}/mine"), &viewer, None).await?;
    ensure!(
        job.status == 200 && job.text.contains("\"record\""),
        "{}",
        job.text
    );
    let foreign = send(world, &format!("/api/jobs/{other}/theirs"), &viewer, None).await?;
    let none = send(world, &format!("/api/jobs/{own}/none"), &viewer, None).await?;
    ensure!(
        foreign.status == 404 && foreign.text == none.text,
        "{}",
        foreign.text
    );
    let events = send(world, "/api/events", &viewer, None).await?;
    ensure!(
        events.text.contains("\"mine\"") && !events.text.contains(other),
        "{}",
        events.text
    );
    let nobody = send(world, "/api/jobs", "", None).await?;
    ensure!(nobody.status == 401, "{}", nobody.text);
    let page = send(world, "/", "", None).await?;
    ensure!(
        page.headers.contains_key("content-security-policy"),
        "no policy"
    );
    Ok(())
}

#[tokio::test]
async fn a_visitor_sees_the_jobs_of_their_own_namespace() {
    scenario(Needs::OperatorPod, Company::Shared, async |world| {
        let other = format!("{}-b", world.namespace);
        world.cluster.fresh_namespace(&other).await?;
        let visited = visit(world, &other).await;
        world.cluster.delete_namespace(&other).await?;
        visited
    })
    .await;
}
