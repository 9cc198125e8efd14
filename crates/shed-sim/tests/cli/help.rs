//! The texts that a user reads before the first run: help, examples, completion.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::succeeds;
use crate::{FLAGS, PROGRAM, SUB_COMMANDS};

/// The long flags that a text names.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-';
    let words = text.split(|c: char| !is_part(c));
    words
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .collect()
}

#[test]
fn the_examples_of_every_help_use_only_flags_that_exist() {
    for command in SUB_COMMANDS {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = succeeds(&words);
        let (options, examples) = help.split_once("Example").expect("examples");
        assert!(
            examples.contains(&format!("{PROGRAM} {command}")),
            "{command}"
        );
        let own: String = if command == "report" {
            // Its examples make their inputs with other sub-commands.
            let lines = examples.lines();
            lines
                .filter(|line| line.contains("shed-lab report"))
                .collect()
        } else {
            examples.to_owned()
        };
        let (known, used) = (flags(options), flags(&own));
        assert!(
            used.is_subset(&known),
            "{command}: {:?}",
            used.difference(&known)
        );
    }
}

#[test]
fn completion_knows_every_sub_command_and_flag_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = succeeds(&["completion", shell]);
        for command in SUB_COMMANDS {
            for word in command.split(' ') {
                assert!(script.contains(word), "{shell}: {command}");
            }
        }
        for flag in FLAGS {
            assert!(script.contains(flag), "{shell}: {flag}");
        }
    }
}

#[test]
fn the_completion_script_is_one_that_bash_takes() {
    let script = succeeds(&["completion", "bash"]);
    let bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn();
    let Ok(mut bash) = bash else {
        eprintln!("left out: there is no bash");
        return;
    };
    let mut input = bash.stdin.take().expect("a pipe");
    input.write_all(script.as_bytes()).expect("bash reads");
    drop(input);
    assert!(bash.wait().expect("bash ends").success());
}
