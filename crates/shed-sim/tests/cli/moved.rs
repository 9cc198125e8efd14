//! Sub-commands that shed-lab has now.

use crate::common::called;

#[test]
fn a_moved_sub_command_names_its_program_in_one_line() {
    for command in [
        "bound",
        "calibrate",
        "fit",
        "laser",
        "league",
        "report",
        "reproduce",
    ] {
        let output = called(&[command, "--preset", "A", "--no-such-flag"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.contains(&format!("shed-lab {command}")),
            "{message}"
        );
        assert!(output.stdout.is_empty());
    }
}
