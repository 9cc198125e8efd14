//! Why pods that carry a job's label are no attempts of it.

/// No job has the label's uid.
pub const NO_JOB: &str = "no_job";
/// The job is in another namespace.
pub const NAMESPACE: &str = "namespace";
/// The job does not control the pod.
pub const OWNER: &str = "owner";
/// The job controls the pod, and no attempt has its name.
pub const NAME: &str = "name";
/// All of them.
pub const ALL: [&str; 4] = [NO_JOB, NAMESPACE, OWNER, NAME];
