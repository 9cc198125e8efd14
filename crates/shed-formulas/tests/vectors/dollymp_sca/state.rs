//! Servers, jobs and launches between JSON and the core's types.

use serde_json::{Value, json};
use shed_formulas::cluster::{CpuMem, Launch, Server};
use shed_formulas::dag::{Job, Phase, Task};

use crate::case::{count, items, number};

pub fn servers(value: &Value) -> Vec<Server> {
    let server = |value: &Value| Server {
        id: id(&value["id"]),
        capacity: CpuMem {
            cpu: number(&value["cpu"]),
            mem: number(&value["mem"]),
        },
        free: CpuMem {
            cpu: number(&value["free_cpu"]),
            mem: number(&value["free_mem"]),
        },
    };
    items(value).map(server).collect()
}

pub fn jobs(value: &Value) -> Vec<Job> {
    items(value).map(job).collect()
}

pub fn job(value: &Value) -> Job {
    Job {
        id: id(&value["id"]),
        arrival: number(&value["arrival"]),
        queue: value["queue"].as_str().unwrap().into(),
        phases: items(&value["phases"]).map(phase).collect(),
    }
}

fn phase(value: &Value) -> Phase {
    let tasks = items(&value["tasks"]).zip(items(&value["hosts"]));
    Phase {
        demand: demand(value),
        theta: number(&value["theta"]),
        sigma: number(&value["sigma"]),
        parents: positions(&value["parents"]),
        tasks: tasks.map(|(state, hosts)| task(state, hosts)).collect(),
    }
}

pub fn demand(value: &Value) -> CpuMem {
    CpuMem {
        cpu: number(&value["cpu"]),
        mem: number(&value["mem"]),
    }
}

pub fn positions(value: &Value) -> Vec<usize> {
    items(value).map(|value| count(value) as usize).collect()
}

fn task(state: &Value, hosts: &Value) -> Task {
    let hosts: Vec<u64> = items(hosts).map(id).collect();
    let copies = state.as_i64().unwrap();
    assert_eq!(copies.max(0), hosts.len() as i64, "copies and hosts differ");
    match copies {
        -1 => Task::Finished,
        0 => Task::Pending,
        _ => Task::Running { hosts },
    }
}

pub fn id(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// A launch in the files' format, after a tag with its step.
pub fn launch(tag: impl Into<Value>, launch: &Launch) -> Value {
    let Launch {
        job,
        phase,
        task,
        server,
    } = launch;
    json!([tag.into(), job, phase, task, server])
}

/// Free capacity per server.
pub fn free(servers: &[Server]) -> Value {
    let row = |server: &Server| json!([server.id, server.free.cpu, server.free.mem]);
    servers.iter().map(row).collect()
}

/// The ids of jobs.
pub fn ids(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.id).collect()
}

/// A map as the files write it: `[[id, value], …]`.
pub fn pairs<'a, T: Copy + Into<Value> + 'a>(
    map: impl IntoIterator<Item = (&'a u64, &'a T)>,
) -> Value {
    let pair = |(id, value): (&u64, &T)| json!([id, (*value).into()]);
    map.into_iter().map(pair).collect()
}
