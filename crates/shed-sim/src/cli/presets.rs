//! Named experiments: `--preset google` stands for a list of flags; flags given in addition take precedence.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use super::CliError;
use table::{COMMON, PRESETS, Preset, UNSET};

mod table;
pub use table::Kind;

/// The similarity of Jaro and Winkler from which on a name may be meant, and the most such names.
const SIMILAR: f64 = 0.8;
const CLOSE_MAX: usize = 4;

/// The arguments with `--preset NAME` replaced by its flags, which follow the `words` words of the sub-command's
/// name.
pub fn expand(args: Vec<OsString>, words: usize) -> Result<Vec<OsString>, CliError> {
    let folder = std::env::var_os("SHED_TRACES");
    expand_with(args, words, folder.as_deref())
}

/// The same, with the folder of traces.
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

/// The name of a preset in files of results, such as `G` for `google` and for `G` itself.
pub fn letter(name: &str) -> Result<&'static str, CliError> {
    find(name).map(|preset| preset.letter)
}

/// The kind of a preset, by its name or letter.
pub fn kind(name: &str) -> Result<Kind, CliError> {
    find(name).map(|preset| preset.kind)
}

/// Whether a preset lets first attempts be preempted.
pub fn allows_preemption(name: &str) -> Result<bool, CliError> {
    let allowed = ("preemption", "when-checkpointed");
    find(name).map(|preset| preset.flags.contains(&allowed))
}

/// A line per preset: its name, its letter and its description.
pub fn listed() -> String {
    PRESETS.iter().fold(String::new(), |mut text, preset| {
        let Preset {
            letter,
            name,
            about,
            ..
        } = preset;
        let _ = writeln!(text, "  {name:<31} {letter:<5} {about}");
        text
    })
}

fn find(name: &str) -> Result<&'static Preset, CliError> {
    let mut presets = PRESETS.iter();
    presets
        .find(|preset| [preset.letter, preset.name].contains(&name))
        .ok_or_else(|| CliError::Usage(unknown(name)))
}

/// The message for an unknown name: the close names, or without any all presets.
fn unknown(name: &str) -> String {
    let close = close_to(name);
    if close.is_empty() {
        let all = listed();
        return format!(
            "--preset: unknown preset `{name}`; the presets are\n{}",
            all.trim_end()
        );
    }
    format!(
        "--preset: unknown preset `{name}`; close to it: {}. `shed-sim presets` lists all",
        close.join(", ")
    )
}

/// Names similar to a mistyped one, the closest first.
fn close_to(name: &str) -> Vec<&'static str> {
    let name = name.to_lowercase();
    let scores = PRESETS.iter().map(|preset| {
        let score = strsim::jaro_winkler(&name, preset.name);
        (score, preset.name)
    });
    let mut close: Vec<_> = scores.filter(|(score, _)| *score >= SIMILAR).collect();
    close.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    close
        .into_iter()
        .map(|(_, name)| name)
        .take(CLOSE_MAX)
        .collect()
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
        for Preset {
            letter,
            name,
            about,
            ..
        } in &PRESETS
        {
            let line = format!("  {name:<31} {letter:<5} {about}");
            assert!(message.contains(&line), "{message}");
        }
        let args = ["shed-sim", "run", "--preset=G"].map(OsString::from);
        let message = expand_with(args.to_vec(), 1, None).unwrap_err().to_string();
        assert!(message.contains("SHED_TRACES"), "{message}");
    }
    #[test]
    fn a_mistyped_name_is_answered_with_close_ones() {
        let message = expanded("shed-sim run --preset gogle").unwrap_err();
        assert!(message.contains("close to it: google, "), "{message}");
        assert!(!message.contains("tpch"), "{message}");
        let message = expanded("shed-sim run --preset Pareto-noresume").unwrap_err();
        assert!(message.contains("to it: pareto-no-resume, "), "{message}");
    }
}
