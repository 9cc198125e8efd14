#!/usr/bin/env python3
"""Tests docs-commands.py on made-up pages, without a cluster: `kubectl` is a script that notes its arguments."""

import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("docs-commands.py")
FENCE = "```"


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="shed-docs-test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        kubectl = self.folder / "kubectl"
        kubectl.write_text(f'#!/bin/sh\necho "$*" >>{self.folder}/calls\n[ "$1" != create ] || cat >>{self.folder}/calls\n')
        kubectl.chmod(0o755)

    def run_page(self, mode, *lines):
        page = self.folder / "a-page.md"
        page.write_text("\n".join(lines) + "\n")
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", SHED_E2E_BUSYBOX="example/busybox")
        done = subprocess.run([PROGRAM, mode, page], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def assert_refused(self, words, *lines):
        code, output = self.run_page("--check", *lines)
        self.assertEqual(code, 1, output)
        self.assertIn(words, output)

    def assert_runs(self, *lines, mode="offline", code=0, words=""):
        found, output = self.run_page(mode, *lines)
        self.assertEqual(found, code, output)
        self.assertIn(words, output)

    def test_each_block_needs_a_class(self):
        self.assert_refused("a-page.md:2: the class is missing", "# A", f"{FENCE}sh", "true", FENCE)
        self.assert_refused("the class is often", f"{FENCE}sh often", "true", FENCE)
        self.assert_refused("the fence has no language", FENCE, "true", FENCE)
        self.assert_refused("instead of bash", f"{FENCE}bash offline", "true", FENCE)
        self.assert_refused("needs a reason", f"{FENCE}sh not-run slow", "true", FENCE)
        self.assert_refused("offline is no class of yaml", f"{FENCE}yaml offline", "a: 1", FENCE)
        self.assert_refused("the class is missing", "<!-- sh", "true", "-->")

    def test_options_are_checked(self):
        self.assert_refused("unknown option often", f"{FENCE}sh offline often", "true", FENCE)
        self.assert_refused("exit is 'no'", f"{FENCE}sh offline exit=no", "true", FENCE)
        self.assert_refused("varies:", f"{FENCE}sh offline varies=(", "true", FENCE)
        self.assert_refused("<name> has no value", f"{FENCE}sh cluster", "kubectl get job <name>", FENCE)

    def test_an_output_belongs_to_commands_of_its_section(self):
        self.assert_refused("a-page.md:6: no commands", "# A", f"{FENCE}sh offline", "true", FENCE, "# B", f"{FENCE}text", "x", FENCE)
        self.assert_runs("# B", f"{FENCE}text example", "x", FENCE, words="0 blocks")

    def test_outputs_are_compared(self):
        page = ["# A", f"{FENCE}sh offline", "seq 3; echo error >&2", FENCE, f"{FENCE}text"]
        self.assert_runs(*page, "1", "2", "3", FENCE, words="1 blocks of class offline, 0 failed")
        self.assert_runs(*page, "1", "…", FENCE)
        self.assert_runs(*page, "1", "2", "4", FENCE, code=1, words="-4\n+3")
        self.assert_runs(*page, "1", FENCE, code=1)
        console = [f"{FENCE}console offline", "$ echo 'a   1'", "a 1", "$ echo b 27 s", "b … s", FENCE]
        self.assert_runs("# A", *console)
        self.assert_runs("# A", *console[:2], "a 2", FENCE, code=1)
        self.assert_runs("# A", f"{FENCE}console offline varies=\\d+", "$ echo a 1", "a 22", FENCE)

    def test_a_failure_is_shown_with_its_line(self):
        self.assert_runs("# A", "", f"{FENCE}sh offline", "false", "true", FENCE, code=1, words="a-page.md:3: `false\ntrue` ended with 1")
        self.assert_runs("# A", f"{FENCE}console offline exit=3", "$ echo why >&2; exit 3", "why", FENCE)
        self.assert_runs("# A", f"{FENCE}sh offline exit=3", "true", FENCE, code=1)

    def test_blocks_share_variables_and_folder(self):
        self.assert_runs("# A", f"{FENCE}sh offline", "export WORD=one", "mkdir new", "cd new", FENCE,
                         "<!-- sh offline", '[ "$WORD" = one ] && [ "$(basename "$PWD")" = new ] && [ -f ../Makefile ]', "-->",
                         words="2 blocks")

    def test_make_runs_in_the_repository(self):
        self.assert_runs("# A", f"{FENCE}sh offline", "make help | head -2 | tail -1", FENCE, f"{FENCE}text", "Try it", FENCE)

    def test_only_the_class_runs_and_reasons_are_listed(self):
        page = ["# A", f"{FENCE}sh verify", "false", FENCE, f"{FENCE}sh not-run needs a printer", "false", FENCE]
        self.assert_runs(*page, words="0 blocks")
        self.assert_runs(*page, mode="--list", words="a-page.md:5: needs a printer\n")

    def test_commands_that_watch_are_stopped(self):
        self.assert_runs("# A", f"{FENCE}sh offline watch=1", "echo first; sleep 60", FENCE, f"{FENCE}text", "first", FENCE)

    def test_on_a_cluster_a_page_has_a_namespace_and_the_images_of_the_tests(self):
        self.assert_runs("# A", "<!-- values name=report -->", f"{FENCE}yaml cluster", "image: busybox:1.37", FENCE,
                         f"{FENCE}sh cluster", "kubectl get job <name> -n <namespace>", FENCE, mode="cluster", words="2 blocks")
        calls = (self.folder / "calls").read_text()
        self.assertIn("create namespace docs-a-page\n", calls)
        self.assertIn("image: example/busybox\n", calls)
        self.assertIn("get job report -n docs-a-page\n", calls)
        self.assertIn("delete namespace docs-a-page", calls)


if __name__ == "__main__":
    unittest.main()
