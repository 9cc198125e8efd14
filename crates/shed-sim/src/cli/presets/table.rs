//! The presets with their flags.

/// What a preset is made from. Policies are ranked within a kind, because no cluster has the mean of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Whole traces, with jobs of one task and of thousands, and the arrivals of the trace.
    WholeDay,
    /// Excerpts of traces.
    Excerpt,
    /// Excerpts of traces whose jobs have one task each and deadlines of their own.
    OneTask,
    /// Made-up jobs.
    Made,
    /// Excerpts and made-up jobs on slots that are slow at times.
    SlowSlots,
}

impl Kind {
    /// The kind's name on pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::WholeDay => "whole day",
            Self::Excerpt => "excerpt",
            Self::OneTask => "one task",
            Self::Made => "made up",
            Self::SlowSlots => "slow slots",
        }
    }
}

/// One experiment.
pub(super) struct Preset {
    /// The name in files of results, also accepted as an alias.
    pub(super) letter: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
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

/// A whole trace with its own arrivals. Late jobs continue, as adopted Jobs do by default. Preemption needs a checkpoint,
/// so it needs reports.
macro_rules! whole_day {
    ($letter:literal, $name:literal, $about:literal, $file:literal, $slots:literal, reports) => {
        whole_day!(
            $letter,
            $name,
            $about,
            $file,
            $slots,
            "preemption" = "when-checkpointed"
        )
    };
    ($letter:literal, $name:literal, $about:literal, $file:literal, $slots:literal, silent) => {
        whole_day!(
            $letter,
            $name,
            concat!($about, "; attempts report nothing"),
            $file,
            $slots,
            "silent" = ""
        )
    };
    ($letter:literal, $name:literal, $about:expr, $file:literal, $slots:literal, $flag:literal = $value:literal) => {
        Preset {
            letter: $letter,
            kind: Kind::WholeDay,
            name: $name,
            about: $about,
            flags: &[
                ("trace", $file),
                ("slots", $slots),
                ("load", UNSET),
                ("attempt-model", "resample"),
                ("report-every", "5%"),
                ("resume", "latest"),
                ("on-miss", "continue"),
                ($flag, $value),
            ],
        }
    };
}

pub(super) const PRESETS: [Preset; 38] = [
    Preset {
        letter: "A",
        kind: Kind::Made,
        name: "pareto",
        about: "150 jobs of 5, 10 and 20 tasks, each attempt Pareto(120 s, 1.5); clones resume",
        flags: of_a!("0", "latest"),
    },
    Preset {
        letter: "Ar",
        kind: Kind::Made,
        name: "pareto-no-resume",
        about: "pareto, but clones start over",
        flags: of_a!("0", "scratch"),
    },
    Preset {
        letter: "aL",
        kind: Kind::Made,
        name: "pareto-slow-launch",
        about: "pareto, but a launch takes 60 s",
        flags: of_a!("0", "latest", "launch-overhead" = "60"),
    },
    Preset {
        letter: "aS",
        kind: Kind::Made,
        name: "pareto-own-slowness",
        about: "pareto, but in half of the tasks slowness is the task's own and clones don't help",
        flags: of_a!("0.5", "latest"),
    },
    Preset {
        letter: "an",
        kind: Kind::Made,
        name: "pareto-silent",
        about: "pareto, but attempts report nothing",
        flags: of_a!("0", "latest", "silent" = ""),
    },
    Preset {
        letter: "C",
        kind: Kind::SlowSlots,
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
        kind: Kind::Excerpt,
        name: "google",
        about: "windows of 200 jobs with 3 to 150 tasks of the Google trace of 2011; a clone takes \
                what a sibling took; originals may be preempted",
        flags: of_windows!("google2011_hawk_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Gr",
        kind: Kind::Excerpt,
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
        kind: Kind::Excerpt,
        name: "google-no-preemption",
        about: "google, but nothing may be preempted",
        flags: of_windows!("google2011_hawk_a.csv.gz", "resample", "never"),
    },
    Preset {
        letter: "G1",
        kind: Kind::Excerpt,
        name: "google-same-times",
        about: "google, but every attempt of a task takes the same: clones never help",
        flags: of_windows!("google2011_hawk_a.csv.gz", "trace", "when-checkpointed"),
    },
    Preset {
        letter: "GJ",
        kind: Kind::Excerpt,
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
        kind: Kind::SlowSlots,
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
        kind: Kind::Excerpt,
        name: "google-part0",
        about: "google with the first 5 600 s of the Google trace, task by task",
        flags: of_windows!("google2011_part0_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Pm",
        kind: Kind::SlowSlots,
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
        kind: Kind::Excerpt,
        name: "yahoo",
        about: "google with a trace of Yahoo, whose durations look made up",
        flags: of_windows!("yahoo_hawk_yh1.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Ym",
        kind: Kind::SlowSlots,
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
        kind: Kind::Excerpt,
        name: "facebook",
        about: "google with shuffles of Facebook: bytes of reducers at 1 Gbit/s",
        flags: of_windows!("fb2010_coflow_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        letter: "Fm",
        kind: Kind::SlowSlots,
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
        kind: Kind::Excerpt,
        name: "tpch",
        about: "windows of 100 stages of TPC-H queries whose median task takes 0.8 s or more",
        flags: of_tpch!("resample"),
    },
    Preset {
        letter: "Tm",
        kind: Kind::SlowSlots,
        name: "tpch-slow-slots",
        about: "tpch on slow slots, as google-slow-slots",
        flags: of_tpch!("trace", "slow-slots" = "0.2", "slowdown-period" = "10"),
    },
    Preset {
        letter: "S",
        kind: Kind::OneTask,
        name: "philly",
        about: "windows of 200 jobs of one task of the Philly trace, each with the deadline that Chronus gave it",
        flags: of_philly!("philly_chronus_slo_a.csv.gz"),
    },
    Preset {
        letter: "Sk",
        kind: Kind::OneTask,
        name: "philly-known",
        about: "philly, but the duration of each job is known at its submission",
        flags: of_philly!("philly_chronus_slo_a.csv.gz", "known-durations" = ""),
    },
    Preset {
        letter: "M",
        kind: Kind::OneTask,
        name: "philly-mixed",
        about: "philly with the mixed trace: three of ten jobs have no deadline and run when no other job waits",
        flags: of_philly!("philly_chronus_mix1_a.csv.gz"),
    },
    Preset {
        letter: "Mk",
        kind: Kind::OneTask,
        name: "philly-mixed-known",
        about: "philly-mixed, but the duration of each job is known at its submission",
        flags: of_philly!("philly_chronus_mix1_a.csv.gz", "known-durations" = ""),
    },
    whole_day!(
        "Wg3",
        "whole-google-3000",
        "the whole Google trace, 5000 jobs of a day, on 3000 slots",
        "google2011_hawk_a.csv.gz",
        "3000",
        reports
    ),
    whole_day!(
        "Wg5",
        "whole-google-5000",
        "the whole Google trace, 5000 jobs of a day, on 5000 slots",
        "google2011_hawk_a.csv.gz",
        "5000",
        reports
    ),
    whole_day!(
        "Wg12",
        "whole-google-12000",
        "the whole Google trace, 5000 jobs of a day, on 12000 slots",
        "google2011_hawk_a.csv.gz",
        "12000",
        reports
    ),
    whole_day!(
        "Wy2",
        "whole-yahoo-2000",
        "the whole Yahoo trace, 2910 jobs of 7 hours, on 2000 slots",
        "yahoo_hawk_yh1.csv.gz",
        "2000",
        reports
    ),
    whole_day!(
        "Wy4",
        "whole-yahoo-4000",
        "the whole Yahoo trace, 2910 jobs of 7 hours, on 4000 slots",
        "yahoo_hawk_yh1.csv.gz",
        "4000",
        reports
    ),
    whole_day!(
        "Wp1",
        "whole-google-part0-1000",
        "the whole trace of google-part0, 561 jobs of half an hour, on 1000 slots",
        "google2011_part0_a.csv.gz",
        "1000",
        reports
    ),
    whole_day!(
        "Wp3",
        "whole-google-part0-3000",
        "the whole trace of google-part0, 561 jobs of half an hour, on 3000 slots",
        "google2011_part0_a.csv.gz",
        "3000",
        reports
    ),
    whole_day!(
        "Wg3n",
        "whole-google-3000-silent",
        "the whole Google trace, 5000 jobs of a day, on 3000 slots",
        "google2011_hawk_a.csv.gz",
        "3000",
        silent
    ),
    whole_day!(
        "Wg5n",
        "whole-google-5000-silent",
        "the whole Google trace, 5000 jobs of a day, on 5000 slots",
        "google2011_hawk_a.csv.gz",
        "5000",
        silent
    ),
    whole_day!(
        "Wg12n",
        "whole-google-12000-silent",
        "the whole Google trace, 5000 jobs of a day, on 12000 slots",
        "google2011_hawk_a.csv.gz",
        "12000",
        silent
    ),
    whole_day!(
        "Wy2n",
        "whole-yahoo-2000-silent",
        "the whole Yahoo trace, 2910 jobs of 7 hours, on 2000 slots",
        "yahoo_hawk_yh1.csv.gz",
        "2000",
        silent
    ),
    whole_day!(
        "Wy4n",
        "whole-yahoo-4000-silent",
        "the whole Yahoo trace, 2910 jobs of 7 hours, on 4000 slots",
        "yahoo_hawk_yh1.csv.gz",
        "4000",
        silent
    ),
    whole_day!(
        "Wp1n",
        "whole-google-part0-1000-silent",
        "the whole trace of google-part0, 561 jobs of half an hour, on 1000 slots",
        "google2011_part0_a.csv.gz",
        "1000",
        silent
    ),
    whole_day!(
        "Wp3n",
        "whole-google-part0-3000-silent",
        "the whole trace of google-part0, 561 jobs of half an hour, on 3000 slots",
        "google2011_part0_a.csv.gz",
        "3000",
        silent
    ),
];
