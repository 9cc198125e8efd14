//! Names of things: newtypes, so that the compiler rejects a task where an attempt is meant.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Arc<str>);

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type! {
    /// One job, for as long as it exists: in Kubernetes its uid, so that a job that was
    /// deleted and made again under the same name is another one.
    JobKey
}
name_type! {
    /// One node of the cluster.
    NodeName
}
name_type! {
    /// The tenant that a job belongs to: in Kubernetes the namespace.
    Tenant
}

name_type! {
    /// The class of jobs that recur: runs of one pipeline, of one query.
    JobClass
}

macro_rules! number_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number_type! {
    /// One index of a job, `0..completions`.
    TaskIndex
}
number_type! {
    /// The number of an attempt within its task: 0, 1, 2, … and never used twice.
    AttemptNumber
}
