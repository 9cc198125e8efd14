//! One run: jobs are created in a namespace of their own, complete, and are removed again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use shed::api::DeadlineJob;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::figures::{Bytes, Figures};
use super::load::{Kind, Size, finished_deadline_job};
use crate::bench::components::Pids;
use crate::bench::namespace::{
    AT_ONCE, Arrival, PAGE, each, is_held, make_namespace, pods, remove, submit_all,
};
use crate::bench::site::{Site, capacity};
use crate::bench::window::Window;

/// How often the audit log is read.
const LOOK: Duration = Duration::from_millis(250);
/// A run ends when nothing in its namespace was written for this long.
const QUIET: Duration = Duration::from_secs(3);
/// For how long processes with nothing to do are measured.
const IDLE: Duration = Duration::from_secs(60);
/// Pods of a node, as e2e/bench-scale.sh sets it.
const PODS_PER_NODE: u32 = 110;

/// A run's jobs.
pub struct Load<'b> {
    site: &'b Site,
    /// How long the run may take.
    limit: Duration,
    size: Size,
    kind: Kind,
    namespace: String,
}

impl<'b> Load<'b> {
    /// Makes the namespace.
    pub async fn prepare(site: &'b Site, limit: Duration, size: Size, kind: Kind) -> Result<Self> {
        let namespace = format!("bench-{}-{}", size.name(), kind.name());
        make_namespace(&site.client, &namespace).await?;
        Ok(Self {
            site,
            limit,
            size,
            kind,
            namespace,
        })
    }

    fn all(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.site.client.clone(), &self.namespace, resource)
    }

    fn jobs(&self) -> Api<DynamicObject> {
        self.all(&match self.kind.is_batch() {
            true => ApiResource::erase::<Job>(&()),
            false => ApiResource::erase::<DeadlineJob>(&()),
        })
    }

    fn window(&self, pids: &Pids) -> Result<Window> {
        Window::open(&self.site.kubeconfig, &self.namespace, pids)
    }

    /// Runs the jobs, and measures the processes meanwhile.
    pub async fn measure(&self, pids: &Pids) -> Result<Figures> {
        // The namespace's own objects are written first.
        let mut window = self.window(pids)?;
        timeout(self.limit, self.quiet(&mut window)).await??;
        let mut window = self.window(pids)?;
        let wall = self.complete(&mut window).await?;
        let released = timeout(self.limit, self.released(&mut window)).await;
        released.with_context(|| self.too_slow("pods to be released"))??;
        ensure!(
            window.tally.writes > 0,
            "the audit log has no write to the namespace"
        );
        let figures = Figures {
            tasks: self.size.tasks(),
            wall_seconds: wall.as_secs_f64(),
            ..measured(&window)?
        };
        let (objects, clones) = self.objects().await?;
        Ok(Figures {
            objects,
            clones,
            ..figures
        })
    }

    /// Makes jobs that have finished.
    pub async fn finish(&self, pids: &Pids) -> Result<()> {
        let mut window = self.window(pids)?;
        self.complete(&mut window).await.map(drop)
    }

    /// Measures the processes while nothing happens.
    pub async fn idle(&self, pids: &Pids) -> Result<Figures> {
        let mut window = self.window(pids)?;
        while window.elapsed() < IDLE {
            tokio::time::sleep(LOOK).await;
            window.look()?;
        }
        let figures = measured(&window)?;
        let objects = self.objects().await?.0;
        Ok(Figures { objects, ..figures })
    }

    fn too_slow(&self, what: &str) -> String {
        format!("waited {:?} for the {what}", self.limit)
    }

    /// Creates the jobs and waits until all are complete: how long that took.
    async fn complete(&self, window: &mut Window) -> Result<Duration> {
        let went = timeout(self.limit, self.create_and_watch(window)).await;
        went.with_context(|| self.too_slow("jobs to complete"))?
    }

    async fn create_and_watch(&self, window: &mut Window) -> Result<Duration> {
        let began = Instant::now();
        let mut complete = BTreeSet::new();
        let mut seen = watcher(self.jobs(), watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let creating = self.create();
        tokio::pin!(creating);
        let mut is_created = false;
        loop {
            tokio::select! {
                made = &mut creating, if !is_created => {
                    made?;
                    is_created = true;
                }
                // A watch that broke begins again.
                job = seen.next() => if let Some(Ok(job)) = job && is_complete(&job)? {
                    complete.insert(job.name_any());
                },
                _ = looks.tick() => drop(window.look()?),
            }
            if is_created && complete.len() == self.size.jobs() as usize {
                return Ok(began.elapsed());
            }
        }
    }

    async fn create(&self) -> Result<()> {
        let arrivals = (0..self.size.jobs()).map(|index| {
            let name = format!("job-{index}");
            // A batch/v1 Job without tasks is finished by its controller.
            let (job, status) = if self.size == Size::Finished && !self.kind.is_batch() {
                let (job, status) = finished_deadline_job(&name);
                (job, Some(status))
            } else {
                (self.kind.manifest(&name, self.size.tasks_per_job()), None)
            };
            Arrival {
                after: self.size.spacing() * index,
                job,
                status,
            }
        });
        submit_all(&self.jobs(), arrivals, AT_ONCE).await
    }

    async fn quiet(&self, window: &mut Window) -> Result<()> {
        while window.look()? < QUIET {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until nothing is written and no finalizer of a controller is left on a pod.
    async fn released(&self, window: &mut Window) -> Result<()> {
        let all: Api<Pod> = Api::namespaced(self.site.client.clone(), &self.namespace);
        loop {
            self.quiet(window).await?;
            if pods(&all, is_held).await?.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Sizes of all jobs and of a page of pods, and the clones that the jobs count.
    async fn objects(&self) -> Result<(BTreeMap<String, Bytes>, u64)> {
        let mut sizes: BTreeMap<String, Bytes> = BTreeMap::new();
        let mut clones = 0;
        let mut take = |resource: &ApiResource, object: &DynamicObject| -> Result<()> {
            let bytes = u64::try_from(shed::size::bytes(object))?;
            sizes.entry(resource.plural.clone()).or_default().add(bytes);
            let own = &object.data["status"]["attempts"]["clones"];
            clones += own.as_u64().unwrap_or(0);
            Ok(())
        };
        let page = ListParams::default().limit(PAGE);
        for resource in [
            ApiResource::erase::<Job>(&()),
            ApiResource::erase::<DeadlineJob>(&()),
        ] {
            let take = |object| take(&resource, &object);
            each(&self.all(&resource), page.clone(), take).await?;
        }
        let resource = ApiResource::erase::<Pod>(&());
        for pod in self.all(&resource).list(&page).await? {
            take(&resource, &pod)?;
        }
        Ok((sizes, clones))
    }

    /// Removes all of it, also after a run that broke off.
    pub async fn remove(&self) -> Result<()> {
        remove(&self.site.client, &self.namespace).await
    }
}

/// What a window shows.
fn measured(window: &Window) -> Result<Figures> {
    let processes = window.used()?;
    let own: f64 = processes.values().map(|used| used.cpu_seconds).sum();
    Ok(Figures {
        rest_cpu_seconds: Some(window.machine_used()? - own),
        window_seconds: window.elapsed().as_secs_f64(),
        requests: window.tally.requests.clone(),
        processes,
        ..Figures::default()
    })
}

fn is_complete(job: &DynamicObject) -> Result<bool> {
    let conditions = job.data["status"]["conditions"].as_array();
    let has = |type_: &str| {
        let mut all = conditions.into_iter().flatten();
        all.any(|own| own["type"] == type_ && own["status"] == "True")
    };
    ensure!(
        !has("Failed"),
        "{} failed: {}",
        job.name_any(),
        job.data["status"]
    );
    Ok(has("Complete"))
}
/// Refuses sizes with more pods at once than the nodes take.
pub async fn ensure_capacity(client: &Client, sizes: &[Size]) -> Result<()> {
    ensure_fit(capacity(client).await?, sizes)
}

fn ensure_fit(capacity: u32, sizes: &[Size]) -> Result<()> {
    for size in sizes {
        ensure!(
            size.live() <= capacity,
            "the size {} has {} pods at once, and the cluster's nodes take {capacity}: set SHED_BENCH_NODES to {} or more, or choose another --size",
            size.name(),
            size.live(),
            size.live().div_ceil(PODS_PER_NODE)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_oversized_run_is_refused_with_the_nodes_that_it_needs() {
        let sizes = [Size::OneBy1000, Size::OneBy10000];
        assert!(ensure_fit(11_000, &sizes).is_ok());
        let said = ensure_fit(1100, &sizes).unwrap_err().to_string();
        for part in ["1x10000", "take 1100", "SHED_BENCH_NODES to 91"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_failed_job_ends_a_run() {
        let job = |type_: &str| -> DynamicObject {
            let conditions = json!([{"type": type_, "status": "True"}]);
            let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
                "status": {"conditions": conditions}});
            serde_json::from_value(job).unwrap()
        };
        assert!(is_complete(&job("Complete")).unwrap());
        assert!(!is_complete(&job("Suspended")).unwrap());
        assert!(is_complete(&job("Failed")).is_err());
    }
}
