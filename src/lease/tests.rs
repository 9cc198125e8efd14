//! Replicas and one apiserver in simulated time: they are killed, frozen and cut off, their clocks
//! are minutes apart, and the apiserver notes every write of a replica that is not the holder.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tower::{BoxError, Layer, Service};

use super::elector::Timing;
use super::write_gate::WriteGateLayer;
use super::*;
use crate::metrics::Metrics;

const TIMING: Timing = Timing {
    duration: Duration::from_secs(12),
    renew_deadline: Duration::from_secs(8),
    retry_period: Duration::from_secs(2),
};
const WORK: &str = "/work";

#[derive(Default)]
struct World {
    lease: Option<Lease>,
    version: u64,
    /// The last writer, and when it wrote.
    worked: Option<(String, Instant)>,
    /// Writes of others than the holder.
    late: Vec<String>,
    writes: usize,
    delay: Duration,
    cut_off: bool,
    loses_answers: bool,
    /// Leases are created by the chart alone.
    forbids_create: bool,
}

impl World {
    fn holder(&self) -> String {
        let spec = self.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        spec.and_then(|spec| spec.holder_identity.clone())
            .unwrap_or_default()
    }

    fn work(&mut self, who: &str) -> (u16, Vec<u8>) {
        self.writes += 1;
        if who != self.holder() {
            self.late.push(format!("{who}, held by {}", self.holder()));
        }
        self.worked = Some((who.to_owned(), Instant::now()));
        (200, Vec::new())
    }

    fn put(&mut self, body: &[u8]) -> (u16, Vec<u8>) {
        let mut lease: Lease = serde_json::from_slice(body).unwrap();
        let current = self.lease.as_ref();
        let current = current.and_then(|lease| lease.metadata.resource_version.clone());
        if lease.metadata.resource_version != current {
            return failure(409, "Conflict");
        }
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        (200, serde_json::to_vec(&lease).unwrap())
    }

    fn get(&self) -> (u16, Vec<u8>) {
        match &self.lease {
            Some(lease) => (200, serde_json::to_vec(lease).unwrap()),
            None => failure(404, "NotFound"),
        }
    }
}

fn failure(code: u16, reason: &str) -> (u16, Vec<u8>) {
    let status = serde_json::json!({"kind": "Status", "status": "Failure", "code": code,
        "message": reason, "reason": reason});
    (code, serde_json::to_vec(&status).unwrap())
}

#[derive(Clone, Default)]
struct Apiserver(Arc<Mutex<World>>);

impl Apiserver {
    fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.0.lock())
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (delay, cut_off) = self.world(|world| (world.delay, world.cut_off));
        if cut_off {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(delay / 2).await;
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let who = parts.headers.get("who").and_then(|who| who.to_str().ok());
        let (code, said) = self.world(|world| match parts.method {
            Method::GET => world.get(),
            _ if parts.uri.path() == WORK => world.work(who.unwrap_or_default()),
            Method::POST if world.forbids_create => failure(403, "Forbidden"),
            _ => world.put(&body),
        });
        if self.world(|world| world.loses_answers) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(delay / 2).await;
        Ok(Response::builder().status(code).body(Body::from(said))?)
    }
}

impl Service<Request<Body>> for Apiserver {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// Nothing of a process runs before this instant, as after SIGSTOP.
type Ice = Arc<Mutex<Instant>>;

struct Freezable(Pin<Box<dyn Future<Output = ()> + Send>>, Ice);

impl Future for Freezable {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let thaw = *self.1.lock();
        if Instant::now() < thaw {
            let waker = context.waker().clone();
            tokio::spawn(async move {
                sleep_until(thaw).await;
                waker.wake();
            });
            return Poll::Pending;
        }
        self.0.as_mut().poll(context)
    }
}

/// A process: it writes ten times a second whenever it leads.
struct Replica {
    task: JoinHandle<()>,
    ice: Ice,
    standing: Arc<Standing>,
}

impl Replica {
    fn start(api: &Apiserver, identity: &str, clock_ahead: i64) -> Self {
        let ice = Arc::new(Mutex::new(Instant::now()));
        let (standing, begun) = (Arc::new(Standing::default()), Instant::now());
        let place = Place {
            namespace: "team".to_owned(),
            name: "shed".to_owned(),
        };
        let mut election = Election::new(
            Client::new(api.clone(), "team"),
            place,
            Elector::new(identity.to_owned(), TIMING),
            Metrics::new().unwrap().lease,
            Arc::clone(&standing),
        );
        election.wall = Box::new(move || {
            let seconds = i64::try_from(begun.elapsed().as_secs()).unwrap();
            Timestamp::from_second(1_800_000_000 + seconds + clock_ahead).unwrap()
        });
        let (api, identity) = (api.clone(), identity.to_owned());
        let life = async move {
            loop {
                let gate = election.acquire().await;
                tokio::select! {
                    () = election.keep(&gate) => gate.close(),
                    () = work(api.clone(), &gate, &identity) => {}
                }
            }
        };
        let task = tokio::spawn(Freezable(Box::pin(life), Arc::clone(&ice)));
        Self {
            task,
            ice,
            standing,
        }
    }

    fn freeze(&self, long: Duration) {
        *self.ice.lock() = Instant::now() + long;
    }

    fn kill(&self) {
        self.task.abort();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn work(api: Apiserver, gate: &Arc<WriteGate>, who: &str) {
    let mut client = WriteGateLayer(Arc::clone(gate)).layer(api);
    loop {
        let request = Request::post(WORK).header("who", who);
        let request = request.body(Body::empty()).unwrap();
        // A failed request is tried again, as a careless caller would.
        let _ = timeout(seconds(5), client.call(request)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Waits until this replica has written, and returns the time that took.
async fn works(api: &Apiserver, who: &str, patience: Duration) -> Duration {
    let begun = Instant::now();
    let worked = async {
        while !api.world(|world| {
            let last = world.worked.as_ref();
            last.is_some_and(|(last, at)| last == who && *at > begun)
        }) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = timeout(patience, worked).await;
    waited.unwrap_or_else(|_| panic!("{who} has not written for {patience:?}"));
    begun.elapsed()
}

fn check_nothing_late(api: &Apiserver) {
    let late = api.world(|world| world.late.clone());
    assert!(late.is_empty(), "{late:?}");
}

/// Two replicas with clocks ten minutes apart; `a` leads.
async fn two() -> (Apiserver, Replica, Replica) {
    let api = Apiserver::default();
    api.world(|world| world.delay = Duration::from_millis(20));
    let a = Replica::start(&api, "a", 300);
    works(&api, "a", seconds(1)).await;
    let b = Replica::start(&api, "b", -300);
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(
        a.standing.ready().unwrap_err(),
        "leading, waiting for the first lists\n"
    );
    assert_eq!(b.standing.ready().unwrap(), "ok: waiting, a leads\n");
    (api, a, b)
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_a_holder_is_updated() {
    let api = Apiserver::default();
    api.world(|world| {
        world.forbids_create = true;
        world.lease = Some(empty_lease());
    });
    let _a = Replica::start(&api, "a", 0);
    works(&api, "a", seconds(1)).await;
    assert_eq!(api.world(|world| world.holder()), "a");
    check_nothing_late(&api);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_may_not_create_the_lease_waits_for_it() {
    let api = Apiserver::default();
    api.world(|world| world.forbids_create = true);
    let a = Replica::start(&api, "a", 0);
    tokio::time::sleep(seconds(60)).await;
    assert!(a.standing.ready().is_err());
    assert_eq!(api.world(|world| world.writes), 0);
    api.world(|world| world.lease = Some(empty_lease()));
    works(&api, "a", seconds(3)).await;
}

#[test]
fn a_leader_that_is_not_ready_names_the_lists_that_are_missing() {
    let standing = Standing::default();
    let stores = crate::cluster::Stores::unlisted();
    standing.leading(Some(Arc::clone(&stores)));
    let line = standing.ready().unwrap_err();
    assert!(line.contains("lists of namespaces, nodes, pods;"), "{line}");
    stores.show_nodes(&[]);
    stores.show(vec![]);
    let line = standing.ready().unwrap_err();
    assert!(line.contains("lists of namespaces;"), "{line}");
}

/// As the chart creates it.
fn empty_lease() -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some("shed".to_owned()),
            resource_version: Some("1".to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_replaced_within_fifteen_seconds() {
    let (api, a, _b) = two().await;
    a.kill();
    let took = works(&api, "b", seconds(15)).await;
    assert!(
        took > seconds(9),
        "{took:?}: too early for a leader that is only slow"
    );
    check_nothing_late(&api);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_frozen_writes_nothing_when_it_wakes_up() {
    let (api, a, _b) = two().await;
    a.freeze(seconds(30));
    works(&api, "b", seconds(15)).await;
    tokio::time::sleep(seconds(40)).await;
    check_nothing_late(&api);
    assert_eq!(a.standing.ready().unwrap(), "ok: waiting, b leads\n");
}

#[tokio::test(start_paused = true)]
async fn a_short_freeze_costs_no_leadership() {
    let (api, a, _b) = two().await;
    a.freeze(seconds(5));
    works(&api, "a", seconds(6)).await;
    check_nothing_late(&api);
}

#[tokio::test(start_paused = true)]
async fn without_an_apiserver_the_leader_stops_and_later_leads_again() {
    let (api, a, _b) = two().await;
    api.world(|world| world.cut_off = true);
    tokio::time::sleep(seconds(300)).await;
    assert!(a.standing.ready().is_err());
    api.world(|world| world.cut_off = false);
    let before = api.world(|world| world.writes);
    tokio::time::sleep(seconds(15)).await;
    assert!(api.world(|world| world.writes) > before, "nobody leads");
    check_nothing_late(&api);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_found_to_be_ours() {
    let (api, _a, _b) = two().await;
    api.world(|world| world.loses_answers = true);
    tokio::time::sleep(seconds(5)).await;
    api.world(|world| world.loses_answers = false);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(api.world(|world| world.holder()), "a");
    works(&api, "a", seconds(1)).await;
    check_nothing_late(&api);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_takes_by_hand_is_left_to_them() {
    let (api, a, b) = two().await;
    api.world(|world| {
        let lease = world.lease.as_mut().unwrap();
        lease.metadata.resource_version = Some("900".to_owned());
        lease.spec.as_mut().unwrap().holder_identity = Some("somebody".to_owned());
        world.late.clear();
    });
    tokio::time::sleep(seconds(4)).await;
    for replica in [&a, &b] {
        let said = replica.standing.ready().unwrap();
        assert_eq!(said, "ok: waiting, somebody leads\n");
    }
    let before = api.world(|world| world.writes);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(api.world(|world| world.writes), before);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_something_else_holds_and_renews_is_never_taken() {
    let api = Apiserver::default();
    let other = Elector::new("other-controller".to_owned(), TIMING);
    let renew = || {
        api.world(|world| {
            let found = world.lease.take().unwrap_or_default();
            let mut lease = other.claim(found, Timestamp::UNIX_EPOCH);
            // The holder is not an operator of shed, so its version is unknown.
            lease.metadata.annotations = None;
            world.version += 1;
            lease.metadata.resource_version = Some(world.version.to_string());
            world.lease = Some(lease);
        });
    };
    renew();
    let a = Replica::start(&api, "a", 0);
    for _ in 0..30 {
        tokio::time::sleep(seconds(10)).await;
        renew();
    }
    let said = a.standing.ready().unwrap();
    assert_eq!(said, "ok: waiting, other-controller leads\n");
    assert_eq!(api.world(|world| world.writes), 0);
    // Once no replica renews it any more, it is free like any other.
    works(&api, "a", seconds(15)).await;
}

/// A generator that needs no crate: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Ten minutes of mishaps to three replicas; returns how often one wrote.
async fn mishaps(seed: u64) -> usize {
    let mut random = Random(seed);
    let api = Apiserver::default();
    let clocks = [300, 0, -300];
    let start =
        |index: usize, life: u32| Replica::start(&api, &format!("{index}_{life}"), clocks[index]);
    let mut replicas: Vec<Replica> = (0..3).map(|index| start(index, 0)).collect();
    let end = Instant::now() + seconds(600);
    let mut life = 0;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(random.below(9_000))).await;
        let index = usize::try_from(random.below(3)).unwrap();
        match random.below(6) {
            0 => {
                life += 1;
                replicas[index].kill();
                replicas[index] = start(index, life);
            }
            1 | 2 => replicas[index].freeze(Duration::from_millis(random.below(40_000))),
            mishap @ (3 | 4) => {
                api.world(|world| {
                    (world.cut_off, world.loses_answers) = (mishap == 3, mishap == 4)
                });
                tokio::time::sleep(Duration::from_millis(random.below(20_000))).await;
                api.world(|world| (world.cut_off, world.loses_answers) = (false, false));
            }
            _ => api.world(|world| world.delay = Duration::from_millis(random.below(3_000))),
        }
    }
    check_nothing_late(&api);
    let before = api.world(|world| world.writes);
    tokio::time::sleep(seconds(60)).await;
    check_nothing_late(&api);
    assert!(api.world(|world| world.writes) > before, "nobody leads");
    before
}

#[tokio::test(start_paused = true)]
async fn no_replica_ever_writes_while_another_holds_the_lease() {
    let mut writes = 0;
    for seed in 0..20 {
        writes += mishaps(seed).await;
    }
    assert!(writes > 5_000, "{writes} writes show little");
}
