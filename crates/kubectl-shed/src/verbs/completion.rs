//! `kubectl shed completion`: completions for a shell.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::terminal;

/// Print completions for a shell, or for kubectl itself
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Complete `kubectl-shed` in this bash
  source <(kubectl shed completion bash)

  # Complete `kubectl shed`: kubectl asks a program of this name
  kubectl shed completion kubectl > ~/.local/bin/kubectl_complete-shed
  chmod +x ~/.local/bin/kubectl_complete-shed")]
pub struct CompletionArgs {
    /// bash, elvish, fish, powershell, zsh, or kubectl.
    #[arg(value_name = "SHELL", value_parser = ["bash", "elvish", "fish", "kubectl", "powershell", "zsh"])]
    shell: String,
}

pub fn run(args: &CompletionArgs, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let text = match args.shell.parse::<Shell>() {
        Ok(shell) => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "kubectl-shed", &mut text);
            String::from_utf8(text)?
        }
        Err(_) => for_kubectl(&mut command),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The program that kubectl runs with the words after `kubectl shed`. It prints candidates and, in the last line, a
/// directive: 4 means no file names, 0 allows them.
fn for_kubectl(command: &mut clap::Command) -> String {
    command.build();
    let mut verbs = String::new();
    let mut flags = String::new();
    for verb in command.get_subcommands() {
        let name = verb.get_name();
        let about = verb.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        verbs.push_str(&format!("{name}\t{about}\n"));
        let shown = verb
            .get_arguments()
            .filter(|argument| !argument.is_hide_set());
        let longs = shown.filter_map(|argument| argument.get_long());
        let longs: Vec<String> = longs.map(|long| format!("--{long}")).collect();
        flags.push_str(&format!(
            "  {name}) printf '%s\\n' {} ;;\n",
            longs.join(" ")
        ));
    }
    format!(
        "#!/bin/sh\n\
         # Completions of `kubectl shed`, printed by `kubectl shed completion kubectl`.\n\
         verb=$1\n\
         last=$verb\n\
         for last do :; done\n\
         if [ $# -le 1 ]; then\n\
         cat <<'END'\n{verbs}END\n  echo :4\n  exit\nfi\n\
         case $last in\n-*) case $verb in\n{flags}  esac; echo :4 ;;\n\
         *) echo :0 ;;\nesac\n"
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn kubectl_gets_every_verb_and_its_flags() {
        let text = for_kubectl(&mut crate::cli::Args::command());
        for words in [
            "check\tCheck manifests",
            "stop-clones\t",
            "release) printf",
            "--require-feasible",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.starts_with("#!/bin/sh\n"));
    }
}
