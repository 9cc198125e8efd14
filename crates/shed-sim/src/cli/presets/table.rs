//! The presets with their flags.

/// One experiment.
pub(super) struct Preset {
    /// The name in files of results, also accepted as an alias.
    pub(super) letter: &'static str,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Flags without their dashes, in addition to [`COMMON`] ones that they do not set.
    pub(super) flags: &'static [(&'static str, &'static str)],
}

/// The value of a flag that a preset leaves out although it is one of [`COMMON`].
pub(super) const UNSET: &str = "unset";

/// The default attempts of presets: launch and first report take 5 % of the median each, and reports have an error of
/// 5 % at first. Jobs stop at their deadline.
pub(super) const COMMON: [(&str, &str); 8] = [
    ("load", "0.8"),
    ("deadline-factor", "1.5"),
    ("launch-overhead", "5%"),
    ("first-report", "5%"),
    ("report-every", "1%"),
    ("report-noise", "0.05"),
    ("resume", "offset"),
    ("on-miss", "fail"),
];

/// Set-up A with the flags that a preset of it needs.
macro_rules! of_a {
    ($own:literal, $resume:literal $(, $flag:literal = $value:literal)*) => {
        &[
            ("trace", "setup:A"),
            ("slots", "138"),
            ("attempt-model", concat!("fresh{beta=1.5,t_min=120,own=", $own, "}")),
            ("resume", $resume),
            $(($flag, $value),)*
        ]
    };
}

/// Windows of 200 jobs with 3 to 150 tasks of a trace.
macro_rules! of_windows {
    ($file:literal, $model:literal, $preemption:literal $(, $flag:literal = $value:literal)*) => {
        &[
            ("trace", $file),
            ("tasks", "3..150"),
            ("window", "200"),
            ("slots", "200"),
            ("attempt-model", $model),
            ("preemption", $preemption),
            $(($flag, $value),)*
        ]
    };
}

/// Stages of TPC-H queries.
macro_rules! of_tpch {
    ($model:literal $(, $flag:literal = $value:literal)*) => {
        &[
            ("trace", "tpch_decima_a.csv.gz"),
            ("split-stages", ""),
            ("min-median", "0.8"),
            ("window", "100"),
            ("slots", "200"),
            ("attempt-model", $model),
            $(($flag, $value),)*
            ("preemption", "when-checkpointed"),
        ]
    };
}

/// Windows of 200 jobs of one task each, with the deadlines of their trace. Launches and reports take the same time
/// in all jobs, because short and long jobs of such a cluster have images of the same size.
macro_rules! of_philly {
    ($file:literal $(, $flag:literal = $value:literal)*) => {
        &[
            ("trace", $file),
            ("window", "200"),
            ("slots", "12"),
            ("deadline-factor", UNSET),
            ("launch-overhead", "60"),
            ("first-report", "60"),
            ("report-every", "60"),
            ("attempt-model", "trace"),
            ("preemption", "when-checkpointed"),
            $(($flag, $value),)*
        ]
    };
}

pub(super) const PRESETS: [Preset; 24] = [
    Preset {
        letter: "A",
        name: "pareto",
        about: "150 jobs of 5, 10 and 20 tasks, each attempt Pareto(120 s, 1.5); clones resume",
        flags: of_a!("0", "latest"),
    },
    Preset {
        letter: "Ar",
        name: "pareto-no-resume",
        about: "pareto, but clones start over",
        flags: of_a!("0", "scratch"),
    },
    Preset {
        letter: "aL",
        name: "pareto-slow-launch",
        about: "pareto, but a launch takes 60 s",
        flags: of_a!("0", "latest", "launch-overhead" = "60"),
    },
    Preset {
        letter: "aS",
        name: "pareto-own-slowness",
        about: "pareto, but in half of the tasks slowness is the task's own and clones don't help",
        flags: of_a!("0.5", "latest"),
    },
    Preset {
        letter: "an",
        name: "pareto-silent",
        about: "pareto, but attempts report nothing",
        flags: of_a!("0", "latest", "silent" = ""),
    },
    Preset {
        letter: "C",
        name: "slow-slots",
        about: "sizes as pareto, tasks of 120 s ± 15 %; a fifth of the states of slots, which last 600 s \
                on average, are slow by a factor of 2.6 to 12",
        flags: &[
            ("trace", "setup:C"),
            ("slots", "138"),
            ("resume", "latest"),
            ("slow-slots", "0.2"),
        ],
    },
    Preset {
        letter: "G",
        name: "google",
        about: "windows of 200 jobs with 3 to 150 tasks of the Google trace of 2011; a clone takes \
                what a sibling took; originals may be preempted",
        flags: of_windows!("google2011_hawk_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Gr",
        name: "google-no-resume",
        about: "google, but attempts start over and nothing may be preempted",
        flags: of_windows!(
            "google2011_hawk_a.csv.gz",
            "resample",
            "never",
            "resume" = "scratch"
        ),
    },
    Preset {
        letter: "Gn",
        name: "google-no-preemption",
        about: "google, but nothing may be preempted",
        flags: of_windows!("google2011_hawk_a.csv.gz", "resample", "never"),
    },
    Preset {
        letter: "G1",
        name: "google-same-times",
        about: "google, but every attempt of a task takes the same: clones never help",
        flags: of_windows!("google2011_hawk_a.csv.gz", "trace", "when-checkpointed"),
    },
    Preset {
        letter: "GJ",
        name: "google-mixed-deadlines",
        about: "google, but deadlines are wider or tighter by up to 65 %, job by job",
        flags: of_windows!(
            "google2011_hawk_a.csv.gz",
            "resample",
            "when-checkpointed",
            "deadline-jitter" = "0.5"
        ),
    },
    Preset {
        letter: "Gm",
        name: "google-slow-slots",
        about: "google, but attempts of a task take the same, and a fifth of the states of slots are slow",
        flags: of_windows!(
            "google2011_hawk_a.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "1650"
        ),
    },
    Preset {
        letter: "P",
        name: "google-part0",
        about: "google with the first 5 600 s of the Google trace, task by task",
        flags: of_windows!("google2011_part0_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Pm",
        name: "google-part0-slow-slots",
        about: "google-part0 on slow slots, as google-slow-slots",
        flags: of_windows!(
            "google2011_part0_a.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "2100"
        ),
    },
    Preset {
        letter: "Y",
        name: "yahoo",
        about: "google with a trace of Yahoo, whose durations look made up",
        flags: of_windows!("yahoo_hawk_yh1.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Ym",
        name: "yahoo-slow-slots",
        about: "yahoo on slow slots, as google-slow-slots",
        flags: of_windows!(
            "yahoo_hawk_yh1.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "470"
        ),
    },
    Preset {
        letter: "F",
        name: "facebook",
        about: "google with shuffles of Facebook: bytes of reducers at 1 Gbit/s",
        flags: of_windows!("fb2010_coflow_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Fm",
        name: "facebook-slow-slots",
        about: "facebook on slow slots, as google-slow-slots",
        flags: of_windows!(
            "fb2010_coflow_a.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "10"
        ),
    },
    Preset {
        letter: "T",
        name: "tpch",
        about: "windows of 100 stages of TPC-H queries whose median task takes 0.8 s or more",
        flags: of_tpch!("resample"),
    },
    Preset {
        letter: "Tm",
        name: "tpch-slow-slots",
        about: "tpch on slow slots, as google-slow-slots",
        flags: of_tpch!("trace", "slow-slots" = "0.2", "slowdown-period" = "10"),
    },
    Preset {
        letter: "S",
        name: "philly",
        about: "windows of 200 jobs of one task of the Philly trace, each with the deadline that Chronus gave it",
        flags: of_philly!("philly_chronus_slo_a.csv.gz"),
    },
    Preset {
        letter: "Sk",
        name: "philly-known",
        about: "philly, but the duration of each job is known at its submission",
        flags: of_philly!("philly_chronus_slo_a.csv.gz", "known-durations" = ""),
    },
    Preset {
        letter: "M",
        name: "philly-mixed",
        about: "philly with the mixed trace: three of ten jobs have no deadline and run when no other job waits",
        flags: of_philly!("philly_chronus_mix1_a.csv.gz"),
    },
    Preset {
        letter: "Mk",
        name: "philly-mixed-known",
        about: "philly-mixed, but the duration of each job is known at its submission",
        flags: of_philly!("philly_chronus_mix1_a.csv.gz", "known-durations" = ""),
    },
];
