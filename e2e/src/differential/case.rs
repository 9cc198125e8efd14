//! A case: a Job, and what happens to it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shed::api;

/// The label of every Job and pod of this test.
pub const LABEL: &str = "e2e.shed.dev/differential";
/// A finalizer of a Job's own, which holds a deleted Job until its outcome is read.
pub const HOLD: &str = "e2e.shed.dev/hold";

/// The controller of one run of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// kube-controller-manager's.
    Builtin,
    Shed,
}

/// A Job, and what happens to it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Case {
    /// Name of the Job.
    pub name: String,
    /// How containers react when their pod is deleted.
    #[serde(default)]
    pub on_delete: OnDelete,
    /// Whether the Job has a finalizer of its own.
    #[serde(default)]
    pub held: bool,
    /// `spec` of the Job.
    pub spec: Value,
    /// Each happens once the controller has nothing left to do.
    pub acts: Vec<Act>,
}

/// How containers react when their pod is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum OnDelete {
    /// SIGTERM ends them: exit code 143.
    #[default]
    Killed,
    /// They save their work and exit with 0.
    ExitZero,
    /// They ignore SIGTERM until [`Act::Release`].
    Linger,
}

/// Something that happens to a Job. A `pod` is the position among the live pods, by index and age; it wraps around.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "act")]
pub enum Act {
    /// A pod comes to an end by itself.
    End {
        pod: usize,
        end: End,
    },
    /// All live pods exit with this code at the same time.
    EndAll {
        code: i32,
    },
    /// A container of a pod ends with 1 and is started again. Position 0 is the main container, others are those of
    /// `initContainers`.
    Restart {
        pod: usize,
        container: usize,
    },
    NotReady {
        pod: usize,
    },
    Suspend,
    Resume,
    Parallelism {
        to: u32,
    },
    Completions {
        to: u32,
    },
    BackoffLimit {
        to: u32,
    },
    /// `activeDeadlineSeconds` becomes 1.
    ActiveDeadline,
    /// The pod template gets an annotation, a node selector and a toleration.
    Template,
    DeletePod {
        pod: usize,
        force: bool,
    },
    /// By the Eviction API.
    Evict {
        pod: usize,
    },
    /// Deleted pods that linger end.
    Release,
    /// A user deletes the Job with this propagation policy.
    DeleteJob {
        propagation: Propagation,
    },
}

/// How a pod ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum End {
    /// Its containers exit with 0.
    Success,
    /// Its main container exits with 1.
    Error,
    /// Its main container exits with 42.
    Exit42,
    /// The container exceeded its memory limit.
    OomKilled,
    /// `activeDeadlineSeconds` of the pod passed, and the containers exited with 0 on SIGTERM.
    PodDeadline,
    /// The node shuts down, and the containers exited with 0 on SIGTERM.
    NodeShutdown,
    /// The kubelet evicts it.
    NodePressure,
    /// Its node is gone: the garbage collector writes the phase only, and deletes it.
    Collected,
    /// An init container exits with 1.
    InitFailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Act {
    /// Whether it changes the Job.
    pub fn is_edit(&self) -> bool {
        use Act::{ActiveDeadline, BackoffLimit, Completions, Parallelism, Template};
        matches!(
            self,
            ActiveDeadline
                | BackoffLimit { .. }
                | Completions { .. }
                | Parallelism { .. }
                | Template
        )
    }
}

impl Case {
    /// The Job under a controller.
    pub fn manifest(&self, controller: Controller) -> Value {
        let labels = json!({LABEL: "yes"});
        let mut metadata = json!({"name": self.name, "labels": labels});
        if self.held {
            metadata["finalizers"] = json!([HOLD]);
        }
        let mut spec = self.spec.clone();
        if controller == Controller::Shed {
            spec["managedBy"] = json!(api::MANAGED_BY);
        }
        let template = &mut spec["template"];
        template["metadata"]["labels"][LABEL] = json!("yes");
        let pod = &mut template["spec"];
        // The volume of a token has a random name.
        pod["automountServiceAccountToken"] = json!(false);
        pod["nodeSelector"][LABEL] = json!("yes");
        pod["tolerations"] = json!([{"key": LABEL, "operator": "Exists"}]);
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    }

    /// The case as a user reads it.
    pub fn yaml(&self) -> String {
        serde_yaml_ng::to_string(self).unwrap_or_else(|error| error.to_string())
    }

    /// Whether the Job is deleted a while after its end.
    pub fn has_ttl(&self) -> bool {
        !self.spec["ttlSecondsAfterFinished"].is_null() && !self.held
    }

    pub fn restarts_in_place(&self) -> bool {
        self.spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_case_is_read_back() {
        let case = Case {
            name: "a".to_owned(),
            on_delete: OnDelete::Linger,
            held: true,
            spec: json!({"template": {"spec": {"restartPolicy": "Never"}}}),
            acts: vec![
                Act::End {
                    pod: 1,
                    end: End::Exit42,
                },
                Act::Suspend,
                Act::DeleteJob {
                    propagation: Propagation::Orphan,
                },
            ],
        };
        let read: Case = serde_yaml_ng::from_str(&case.yaml()).unwrap();
        assert_eq!(read, case);
    }

    #[test]
    fn both_controllers_get_the_same_job_but_for_managed_by() {
        let spec = json!({"template": {"spec": {"restartPolicy": "Never"}}});
        let case = Case {
            name: "a".to_owned(),
            on_delete: OnDelete::Killed,
            held: false,
            spec,
            acts: Vec::new(),
        };
        let mut shed = case.manifest(Controller::Shed);
        let managed = shed["spec"].as_object_mut().unwrap().remove("managedBy");
        assert_eq!(managed, Some(json!("shed.dev/deadline-controller")));
        assert_eq!(shed, case.manifest(Controller::Builtin));
    }
}
