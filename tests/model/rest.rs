//! I3 and I6: from any state, once faults have stopped, everything comes to rest, the job is
//! finished, every attempt is counted, and a further pass says nothing.

use shed_core::ids::TaskIndex;
use shed_core::plan;
use shed_core::snapshot::AttemptKind;

use super::model::{Model, Planned, actions, catch_up, fingerprint};
use super::operator::{self};
use super::world::{Budget, Stage, World};

/// More rounds than any state needs: one that does not come to rest is a finding.
const ROUNDS_MAX: usize = 30;

impl Model {
    /// Whether the state comes to rest as it should. States on the way are remembered, so that
    /// each costs one round.
    pub fn rests(&self, world: &World) -> bool {
        if world.broken.is_some() {
            return true;
        }
        let mut world = world.clone();
        self.calm(&mut world);
        let mut way = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let here = fingerprint(&world);
            if self.restful.lock().contains(&here) {
                break;
            }
            way.push(here);
            let before = world.clone();
            self.round(&mut world);
            if world.broken.is_some() {
                return false;
            }
            if world == before {
                if !self.is_done(&world) {
                    return false;
                }
                break;
            }
            if way.len() == ROUNDS_MAX {
                return false;
            }
        }
        self.restful.lock().extend(way);
        true
    }

    /// Faults are over: watches catch up, the user wants the job to run.
    fn calm(&self, world: &mut World) {
        world.left = Budget {
            ..super::model::UNDISTURBED
        };
        catch_up(world);
        if world.suspended {
            world.job_changed(false);
            world.suspended = false;
        }
    }

    /// The pass that is under way, one more with what the planner would do, then the kubelet.
    fn round(&self, world: &mut World) {
        self.finish_pass(world);
        let slice = Self::needed(world);
        self.look(world, &slice);
        self.finish_pass(world);
        let ids: Vec<_> = world.pods.keys().copied().collect();
        for id in ids {
            let finish = operator::finish(world, id);
            let Some(pod) = world.pods.get_mut(&id) else {
                continue;
            };
            pod.stage = match pod.stage {
                Stage::Pending if !pod.deleting => Stage::Running,
                Stage::Running if pod.deleting => Stage::Failed(finish),
                Stage::Running => Stage::Succeeded(finish),
                other => other,
            };
        }
        world.collect_garbage();
    }

    fn finish_pass(&self, world: &mut World) {
        while let Some(&write) = Self::next_writes(world).first() {
            self.write(world, write, true);
        }
    }

    /// A launch for every task that has no attempt, and no limit to them.
    fn needed(world: &World) -> Vec<plan::Move> {
        let ledger = &world.job.ledger;
        let launch = |task: u32| {
            let index = TaskIndex(task);
            if ledger.done.contains(index) || ledger.failed.contains(index) {
                return Vec::new();
            }
            let entry = ledger.tasks.get(&task);
            let attempts = entry.into_iter().flat_map(|entry| &entry.attempts);
            let lives = attempts.filter(|attempt| attempt.kill.is_none()).count() > 0;
            let kind = match entry {
                Some(entry) if entry.next_attempt > 0 => AttemptKind::Retry,
                _ => AttemptKind::Original,
            };
            let launch = (!lives).then_some(Planned::Launch(task, kind));
            launch.into_iter().flat_map(actions).collect()
        };
        let tasks = 0u32..;
        tasks.take(world.given.len()).flat_map(launch).collect()
    }

    fn is_done(&self, world: &World) -> bool {
        let ledger = &world.job.ledger;
        let all_ended = (0u32..).take(world.given.len()).all(|task| {
            ledger.done.contains(TaskIndex(task)) || ledger.failed.contains(TaskIndex(task))
        });
        let stopped = world.overdue && ledger.ending.is_some();
        ledger.finished
            && (all_ended || stopped)
            && ledger.tasks.values().all(|task| task.attempts.is_empty())
            && world.pods.values().all(|pod| !pod.tracked && pod.is_over())
            && world.flight.is_none()
    }
}
