use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Volume;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::service_fn;

use super::*;
use crate::adopt::AdoptJobs;
use crate::clock::Clock;
use crate::cluster::Touched;

/// Pages of each list.
const PAGES: usize = 3;

/// The pages that an apiserver was asked for.
#[derive(Default)]
struct Asked {
    pages: BTreeMap<String, usize>,
    limits: BTreeSet<String>,
    /// Pages that are being answered, and the most that were at a time.
    answering: usize,
    most: usize,
}

impl Asked {
    /// The answer: the list's next page, or none to a watch, which lasts.
    fn take(&mut self, request: &Request<Body>) -> Option<Value> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default();
        let limit = query.split('&').find(|pair| pair.starts_with("limit="))?;
        self.limits.insert(limit.to_owned());
        self.answering += 1;
        self.most = self.most.max(self.answering);
        let pages = self.pages.entry(path).or_default();
        *pages += 1;
        let next = if *pages < PAGES { "next" } else { "" };
        let metadata = json!({"resourceVersion": "5", "continue": next});
        Some(json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": []}))
    }
}

/// The watches of an apiserver that never answers this list, and what they asked for.
fn started(
    silent: &'static str,
    tasks: &mut JoinSet<&'static str>,
) -> (Arc<Stores>, Arc<Mutex<Asked>>) {
    let asked: Arc<Mutex<Asked>> = Arc::default();
    let server = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        let answer = server.lock().take(&request);
        let answer = answer.filter(|_| request.uri().path() != silent);
        async move {
            // Others could ask meanwhile.
            sleep(Duration::from_millis(1)).await;
            if answer.is_some() {
                server.lock().answering -= 1;
            }
            match answer {
                Some(page) => {
                    Ok::<_, kube::Error>(Response::new(Body::from(page.to_string().into_bytes())))
                }
                None => std::future::pending().await,
            }
        }
    });
    let client = Client::new(service, "shed");
    let touched = Touched {
        jobs: mpsc::unbounded_channel().0,
        status_only_jobs: mpsc::unbounded_channel().0,
        batch: mpsc::unbounded_channel().0,
    };
    let stores = Stores::start(&client, AdoptJobs::All, &touched, Clock::for_tests(), tasks);
    (stores, asked)
}

#[tokio::test(start_paused = true)]
async fn all_lists_come_in_small_pages_one_at_a_time() {
    let mut tasks = JoinSet::new();
    let (stores, asked) = started("", &mut tasks);
    stores.ready().await;
    let asked = asked.lock();
    let pages: Vec<_> = asked
        .pages
        .iter()
        .map(|(path, pages)| (path.as_str(), *pages))
        .collect();
    let lists = [
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/api/v1/pods",
        "/apis/batch/v1/jobs",
        "/apis/shed.dev/v1alpha1/deadlinejobs",
    ];
    assert_eq!(pages, lists.map(|path| (path, PAGES)));
    assert_eq!(asked.limits, BTreeSet::from([format!("limit={PAGE}")]));
    assert_eq!(asked.most, 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_holds_up_no_other() {
    let mut tasks = JoinSet::new();
    let (stores, asked) = started("/api/v1/pods", &mut tasks);
    while stores.awaited() != ["pods"] {
        sleep(Duration::from_secs(1)).await;
    }
    stores.jobs.store.wait_until_ready().await.unwrap();
    assert_eq!(asked.lock().pages["/api/v1/pods"], 1);
}

/// The number of requests that come in while nothing happens.
async fn settled(count: &AtomicU32) -> u32 {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    count.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_page_keeps_its_turn_until_it_was_taken_in() {
    let stores = Stores::unlisted();
    let count: Arc<AtomicU32> = Arc::default();
    let server = Arc::clone(&count);
    let service = service_fn(move |_: Request<Body>| {
        server.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, kube::Error>(Response::new(Body::empty())) }
    });
    let client = Client::new(service, "shed");
    let read = |reader: Client, path: &'static str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        tokio::spawn(async move { drop(reader.send(request).await.unwrap()) })
    };
    let [pods, jobs, nodes] = [(); 3].map(|()| stores.reader(&client));
    let _first = read(pods.clone(), "/api/v1/pods?limit=20");
    assert_eq!(settled(&count).await, 1);
    let _second = read(jobs.clone(), "/apis/batch/v1/jobs?limit=20");
    assert_eq!(
        settled(&count).await,
        1,
        "the page of pods was not taken in"
    );
    let _watch = read(pods, "/api/v1/pods?watch=true");
    assert_eq!(settled(&count).await, 3);
    let _third = read(nodes, "/api/v1/nodes?limit=20");
    assert_eq!(settled(&count).await, 3);
    drop(jobs);
    assert_eq!(settled(&count).await, 4, "that reader is gone");
}

#[tokio::test]
async fn a_page_of_too_many_bytes_is_asked_for_again_in_parts() {
    let stores = Stores::unlisted();
    let asked: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (log, size) = (Arc::clone(&asked), Arc::new(Mutex::new(1_000_000)));
    let object = Arc::clone(&size);
    let service = service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap().to_owned();
        let limit = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("limit="));
        let limit: usize = limit.unwrap().parse().unwrap();
        log.lock().push(limit);
        let bytes = limit * *object.lock();
        let page = vec![b'x'; bytes.min(20_000_000)];
        async move { Ok::<_, kube::Error>(Response::new(Body::from(page))) }
    });
    let reader = stores.reader(&Client::new(service, "shed"));
    let list = async |limit: u32| {
        let uri = format!("/api/v1/pods?limit={limit}&continue=a");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let answer = reader.send(request).await.unwrap();
        answer.into_body().collect_bytes().await.unwrap().len()
    };
    assert_eq!(list(PAGE).await, 5_000_000);
    assert_eq!(list(PAGE).await, 5_000_000);
    *size.lock() = 1000;
    assert_eq!(list(PAGE).await, 5_000);
    assert_eq!(list(1).await, 1_000);
    assert_eq!(list(PAGE).await, 20_000);
    // One object is as large as it is.
    *size.lock() = 20_000_000;
    assert_eq!(list(PAGE).await, 20_000_000);
    assert_eq!(*asked.lock(), [20, 5, 5, 5, 1, 20, 20, 5, 2, 1]);
}

#[tokio::test]
async fn a_page_of_many_small_parts_is_asked_for_again_in_parts() {
    let stores = Stores::unlisted();
    let asked: Arc<AtomicU32> = Arc::default();
    let count = Arc::clone(&asked);
    assert!(
        size_of::<Volume>() > NESTED,
        "and so no page of it counts too much"
    );
    let page = br#"{"name":"a","emptyDir":{}},"#.repeat(30_000);
    let service = service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        let page = page.clone();
        async move { Ok::<_, kube::Error>(Response::new(Body::from(page))) }
    });
    let reader = stores.reader(&Client::new(service, "shed"));
    let request = Request::get("/api/v1/pods?limit=20").body(Body::empty());
    reader.send(request.unwrap()).await.unwrap();
    // 20, 5, 2 and 1.
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[test]
fn a_list_is_known_by_its_limit() {
    for (uri, namespace) in [
        ("/apis/batch/v1/jobs?&limit=20", Some("")),
        ("/api/v1/namespaces?limit=20", Some("")),
        (
            "/api/v1/namespaces/team/pods?labelSelector=a&limit=20",
            Some("team"),
        ),
        (
            "/api/v1/namespaces/team/pods?watch=true&resourceVersion=5",
            None,
        ),
        ("/api/v1/namespaces/team/pods/one", None),
    ] {
        let request = Request::get(uri).body(()).unwrap();
        assert_eq!(namespace_of_list(&request).as_deref(), namespace, "{uri}");
    }
}
