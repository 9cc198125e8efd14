//! Named experiments: `--preset G` stands for a list of flags; flags given in addition take precedence.

use std::ffi::{OsStr, OsString};

use super::CliError;

/// One experiment.
struct Preset {
    name: &'static str,
    about: &'static str,
    /// Flags without their dashes, in addition to [`COMMON`] ones that they do not set.
    flags: &'static [(&'static str, &'static str)],
}

/// The value of a flag that a preset leaves out although it is one of [`COMMON`].
const UNSET: &str = "unset";

/// The default attempts of presets: launch and first report take 5 % of the median each, and reports have an error of
/// 5 % at first. Jobs stop at their deadline.
const COMMON: [(&str, &str); 8] = [
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
            ("attempt-model", concat!("redraw{beta=1.5,t_min=120,own=", $own, "}")),
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

const PRESETS: [Preset; 24] = [
    Preset {
        name: "A",
        about: "150 jobs of 5, 10 and 20 tasks, each attempt Pareto(120 s, 1.5); clones resume",
        flags: of_a!("0", "latest"),
    },
    Preset {
        name: "Ar",
        about: "A, but clones start over",
        flags: of_a!("0", "scratch"),
    },
    Preset {
        name: "aL",
        about: "A, but a launch takes 60 s",
        flags: of_a!("0", "latest", "launch-overhead" = "60"),
    },
    Preset {
        name: "aS",
        about: "A, but in half of the tasks slowness is the task's own and clones don't help",
        flags: of_a!("0.5", "latest"),
    },
    Preset {
        name: "an",
        about: "A, but attempts report nothing",
        flags: of_a!("0", "latest", "silent" = ""),
    },
    Preset {
        name: "C",
        about: "sizes as A, tasks of 120 s ± 15 %; a fifth of the states of slots, which last 600 s \
                on average, are slow by a factor of 2.6 to 12",
        flags: &[
            ("trace", "setup:C"),
            ("slots", "138"),
            ("resume", "latest"),
            ("slow-slots", "0.2"),
        ],
    },
    Preset {
        name: "G",
        about: "windows of 200 jobs with 3 to 150 tasks of the Google trace of 2011; a clone takes \
                what a sibling took; originals may be preempted",
        flags: of_windows!("google2011_hawk_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        name: "Gr",
        about: "G, but attempts start over and nothing may be preempted",
        flags: of_windows!(
            "google2011_hawk_a.csv.gz",
            "resample",
            "never",
            "resume" = "scratch"
        ),
    },
    Preset {
        name: "Gn",
        about: "G, but nothing may be preempted",
        flags: of_windows!("google2011_hawk_a.csv.gz", "resample", "never"),
    },
    Preset {
        name: "G1",
        about: "G, but every attempt of a task takes the same: clones never help",
        flags: of_windows!("google2011_hawk_a.csv.gz", "trace", "when-checkpointed"),
    },
    Preset {
        name: "GJ",
        about: "G, but deadlines are wider or tighter by up to 65 %, job by job",
        flags: of_windows!(
            "google2011_hawk_a.csv.gz",
            "resample",
            "when-checkpointed",
            "deadline-jitter" = "0.5"
        ),
    },
    Preset {
        name: "Gm",
        about: "G, but attempts of a task take the same, and a fifth of the states of slots are slow",
        flags: of_windows!(
            "google2011_hawk_a.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "1650"
        ),
    },
    Preset {
        name: "P",
        about: "G with the first 5 600 s of the Google trace, task by task",
        flags: of_windows!("google2011_part0_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        name: "Pm",
        about: "P with slow slots, as Gm",
        flags: of_windows!(
            "google2011_part0_a.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "2100"
        ),
    },
    Preset {
        name: "Y",
        about: "G with a trace of Yahoo, whose durations look made up",
        flags: of_windows!("yahoo_hawk_yh1.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        name: "Ym",
        about: "Y with slow slots, as Gm",
        flags: of_windows!(
            "yahoo_hawk_yh1.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "470"
        ),
    },
    Preset {
        name: "F",
        about: "G with shuffles of Facebook: bytes of reducers at 1 Gbit/s",
        flags: of_windows!("fb2010_coflow_a.csv.gz", "resample", "when-checkpointed"),
    },
    Preset {
        name: "Fm",
        about: "F with slow slots, as Gm",
        flags: of_windows!(
            "fb2010_coflow_a.csv.gz",
            "trace",
            "when-checkpointed",
            "slow-slots" = "0.2",
            "slowdown-period" = "10"
        ),
    },
    Preset {
        name: "T",
        about: "windows of 100 stages of TPC-H queries whose median task takes 0.8 s or more",
        flags: of_tpch!("resample"),
    },
    Preset {
        name: "Tm",
        about: "T with slow slots, as Gm",
        flags: of_tpch!("trace", "slow-slots" = "0.2", "slowdown-period" = "10"),
    },
    Preset {
        name: "S",
        about: "windows of 200 jobs of one task of the Philly trace, each with the deadline that Chronus gave it",
        flags: of_philly!("philly_chronus_slo_a.csv.gz"),
    },
    Preset {
        name: "Sk",
        about: "S, but the duration of each job is known at its submission",
        flags: of_philly!("philly_chronus_slo_a.csv.gz", "known-durations" = ""),
    },
    Preset {
        name: "M",
        about: "S with the mixed trace: three of ten jobs have no deadline and run when no other job waits",
        flags: of_philly!("philly_chronus_mix1_a.csv.gz"),
    },
    Preset {
        name: "Mk",
        about: "M, but the duration of each job is known at its submission",
        flags: of_philly!("philly_chronus_mix1_a.csv.gz", "known-durations" = ""),
    },
];

/// The arguments with `--preset NAME` replaced by its flags, which follow the `words` words of the sub-command's
/// name.
///
/// # Errors
/// There is no such preset, or the folder of its trace is not known.
pub fn expand(args: Vec<OsString>, words: usize) -> Result<Vec<OsString>, CliError> {
    let folder = std::env::var_os("SHED_TRACES");
    expand_with(args, words, folder.as_deref())
}

/// The same, with the folder of traces.
///
/// # Errors
/// There is no such preset, or the folder of its trace is not known.
pub fn expand_with(
    mut args: Vec<OsString>,
    words: usize,
    folder: Option<&OsStr>,
) -> Result<Vec<OsString>, CliError> {
    let Some(name) = take_preset(&mut args) else {
        return Ok(args);
    };
    let mut flags = Vec::new();
    for (flag, value) in flags_of(find(&name)?) {
        if is_given(&args, flag) {
            continue;
        }
        flags.push(OsString::from(format!("--{flag}")));
        if flag == "trace" {
            flags.push(trace(&name, value, folder)?);
        } else if !value.is_empty() {
            flags.push(value.into());
        }
    }
    let at = args.len().min(1 + words);
    args.splice(at..at, flags);
    Ok(args)
}

fn take_preset(args: &mut Vec<OsString>) -> Option<String> {
    let at = args.iter().position(|arg| {
        let text = arg.to_str();
        text.is_some_and(|text| text == "--preset" || text.starts_with("--preset="))
    })?;
    let flag = args.remove(at);
    let inline = flag.to_str().and_then(|text| text.split_once('='));
    match inline {
        Some((_, name)) => Some(name.to_owned()),
        None if at < args.len() => Some(args.remove(at).to_string_lossy().into_owned()),
        None => Some(String::new()),
    }
}

fn find(name: &str) -> Result<&'static Preset, CliError> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| {
            let known = PRESETS.iter();
            let known: Vec<String> = known
                .map(|p| format!("  {:<3}{}", p.name, p.about))
                .collect();
            let known = known.join("\n");
            CliError::Usage(format!(
                "--preset: unknown preset `{name}`; the presets are\n{known}"
            ))
        })
}

/// The flags of the preset, then the common ones that it does not set.
fn flags_of(preset: &Preset) -> Vec<(&'static str, &'static str)> {
    let sets = |flag: &str| preset.flags.iter().any(|(own, _)| *own == flag);
    let common = COMMON.iter().filter(|(flag, _)| !sets(flag));
    let all = preset.flags.iter().chain(common).copied();
    all.filter(|(_, value)| *value != UNSET).collect()
}

fn is_given(args: &[OsString], flag: &str) -> bool {
    let other = match flag {
        "trace" => "recording",
        "slots" => "nodes",
        "report-every" | "first-report" => "silent",
        _ => flag,
    };
    args.iter().filter_map(|arg| arg.to_str()).any(|arg| {
        let name = arg.strip_prefix("--").map(|arg| arg.split('=').next());
        name.flatten()
            .is_some_and(|name| name == flag || name == other)
    })
}

fn trace(preset: &str, file: &str, folder: Option<&OsStr>) -> Result<OsString, CliError> {
    if file.starts_with("setup:") {
        return Ok(file.into());
    }
    match folder {
        Some(folder) => Ok(std::path::Path::new(folder).join(file).into_os_string()),
        None => Err(CliError::Usage(format!(
            "--preset {preset} needs {file}: set SHED_TRACES to its folder, or give --trace FILE"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let args = text.split(' ').map(OsString::from).collect();
        let words = expand_with(args, 1, Some(OsStr::new("/t")));
        let words = words.map_err(|error| error.to_string())?;
        let words: Vec<String> = words
            .into_iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        Ok(words.join(" "))
    }

    #[test]
    fn what_is_given_beside_a_preset_wins() {
        let text = expanded("shed-sim run --load 0.95 --preset Gr --window=50").unwrap();
        assert!(
            text.contains("--load 0.95") && !text.contains("--load 0.8"),
            "{text}"
        );
        assert!(
            text.contains("--trace /t/google2011_hawk_a.csv.gz"),
            "{text}"
        );
        assert!(
            text.contains("--resume scratch") && !text.contains("offset"),
            "{text}"
        );
        assert!(
            !text.contains("--window 200") && !text.contains("preset"),
            "{text}"
        );
        let plain = "shed-sim run --trace a.csv";
        assert_eq!(expanded(plain).unwrap(), plain);
    }

    #[test]
    fn a_trace_with_deadlines_of_its_own_gets_no_others() {
        let text = expanded("shed-sim run --preset M").unwrap();
        assert!(!text.contains("deadline-factor"), "{text}");
        assert!(
            text.contains("--load 0.8") && !text.contains(UNSET),
            "{text}"
        );
        let text = expanded("shed-sim run --preset M --deadline-factor 2").unwrap();
        assert!(text.contains("--deadline-factor 2"), "{text}");
    }

    #[test]
    fn an_unknown_preset_is_answered_with_those_there_are() {
        let message = expanded("shed-sim run --preset Z").unwrap_err();
        for preset in &PRESETS {
            assert!(message.contains(preset.about), "{message}");
        }
        let args = ["shed-sim", "run", "--preset=G"].map(OsString::from);
        let message = expand_with(args.to_vec(), 1, None).unwrap_err().to_string();
        assert!(message.contains("SHED_TRACES"), "{message}");
    }
}
