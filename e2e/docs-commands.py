#!/usr/bin/env python3
"""Runs the commands of README, tutorials and how-to pages, and compares their output with what the pages show.

  e2e/docs-commands.py --check [FILE...]   every block of commands has a class, and every output belongs to a command
  e2e/docs-commands.py --list [FILE...]    the blocks that no test runs, with the reason
  e2e/docs-commands.py CLASS [FILE...]     runs the blocks of a class

Words behind a fence's language give the class and the options of a block:

  ```sh offline                 no cluster, seconds: `make unit` runs it
  ```sh cluster                 a cluster with shed and real nodes: e2e/run.sh runs it
  ```sh verify                  minutes: `make verify` runs it
  ```sh not-run <reason>        no test runs it; `make verify` lists it
  ```console offline            commands behind `$ `, each followed by its output
  ```yaml cluster               an object for `kubectl create`
  ```text                       output of the commands before it in the same section
  ```text example               output that differs each time, not compared

Options: `varies=REGEX` leaves parts of the output out of the comparison, `exit=N` expects another exit code than 0,
`watch=SECONDS` stops the commands after that time. In an output, … stands for anything within a line, and a line of it
for any lines. Commands that readers need not see stand in a comment: `<!-- sh CLASS`, lines of commands, `-->`.
`<!-- values name=hello -->` replaces the placeholder <name> in the commands of a page. <namespace> is the page's own.

The blocks of a page run in order in a folder of their own, in which the files of the repository can be read.
On a cluster each page has a namespace of its own. Environment: KUBECONFIG, SHED_E2E_BUSYBOX (an image with a shell).
"""

import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
TASK_PAGES = ["README.md", "docs/tutorials/*.md", "docs/how-to/*.md"]
RUN_CLASSES = ("offline", "cluster", "verify")
TIME_LIMITS = {"offline": 600, "cluster": 600, "verify": 3600}
# Pages at a time: those with a cluster mostly wait.
AT_A_TIME = {"offline": 1, "cluster": 4, "verify": 1}
SHELLS = ("bash", "shell", "zsh")
IMAGE = "busybox:1.37"
PLACEHOLDER = re.compile(r"<([a-z][a-z -]*)>")
COMMENT = re.compile(r"^<!-- (sh|values)\b(.*?)-->", re.DOTALL | re.MULTILINE)


class Block(typing.NamedTuple):
    """A block of a page: a fence, or commands in a comment."""

    line: int
    language: str
    words: list  # behind the language
    content: str
    section: int  # line of the heading above it

    @property
    def run_class(self):
        return self.words[0] if self.words else ""

    @property
    def is_commands(self):
        return self.language in ("sh", "console") or (self.language == "yaml" and bool(self.words))

    def option(self, name, default=None):
        return next((word.partition("=")[2] for word in self.words[1:] if word.startswith(f"{name}=")), default)


class Page(typing.NamedTuple):
    path: pathlib.Path
    blocks: list
    values: dict  # of placeholders

    @property
    def name(self):
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name


def read_page(path):
    text = path.read_text(encoding="utf-8")
    blocks, values, hidden = [], {}, []
    for comment in COMMENT.finditer(text):
        line = text.count("\n", 0, comment.start()) + 1
        if comment[1] == "values":
            values.update(word.split("=", 1) for word in comment[2].split() if "=" in word)
        else:
            first, _, rest = comment[2].partition("\n")
            hidden.append((line, first.split(), rest.rstrip("\n")))
    section, fence = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"(\s*)```\s*(.*)$", line)
        if mark and fence is None:
            fence = (number, mark[2].split(), [], len(mark[1]))
        elif mark:
            words = fence[1]
            content = "\n".join(row[min(fence[3], len(row) - len(row.lstrip())):] for row in fence[2])
            blocks.append(Block(fence[0], words[0] if words else "", words[1:], content, section))
            fence = None
        elif fence is not None:
            fence[2].append(line)
        elif line.startswith("#"):
            section = number
    blocks += [Block(line, "sh", words, content, 0) for line, words, content in hidden]
    return Page(path, sorted(blocks, key=lambda block: block.line), values)


def outputs(page):
    """Output blocks by the line of their commands, and output blocks without commands."""
    found, orphans, before = {}, [], None
    for block in page.blocks:
        if block.language == "sh" and block.section:
            before = block
        elif block.language == "text" and block.run_class != "example":
            if before is None or before.section != block.section or before.line in found:
                orphans.append(block)
            else:
                found[before.line] = block
    return found, orphans


def problems(page):
    """Yields (line, problem) of the blocks of a page."""
    for block in page.blocks:
        if not block.language:
            yield block.line, "the fence has no language: use sh, console, or text for output"
        elif block.language in SHELLS:
            yield block.line, f"use sh or console instead of {block.language}"
        elif block.language == "yaml" and block.words and block.run_class != "cluster":
            yield block.line, f"{block.run_class} is no class of yaml: use cluster, or none for a part of an object"
        elif block.is_commands:
            yield from ((block.line, problem) for problem in block_problems(page, block))
    for block in outputs(page)[1]:
        yield block.line, "no commands before this output in its section: use `text example`"


def block_problems(page, block):
    """Yields what is wrong with a block of commands."""
    if block.run_class == "not-run":
        if len(block.words) < 3:
            yield "not-run needs a reason of some words"
        return
    if block.run_class not in RUN_CLASSES:
        yield f"the class is {block.run_class or 'missing'}: use {', '.join(RUN_CLASSES)} or not-run <reason>"
        return
    for word in block.words[1:]:
        name, is_option, value = word.partition("=")
        if not is_option or name not in ("varies", "exit", "watch"):
            yield f"unknown option {word}: use varies=, exit= or watch="
        elif name == "varies":
            try:
                re.compile(value)
            except re.error as error:
                yield f"varies: {error}"
        elif not value.isdigit():
            yield f"{name} is {value!r}: use a number"
    if block.language == "console" and not re.match(r"[$] ", block.content):
        yield "a console block begins with `$ ` and a command"
    for name in PLACEHOLDER.findall(commands_of(block)):
        if name != "namespace" and name not in page.values:
            yield f"<{name}> has no value: add <!-- values {name}=… -->"


def steps_of(block):
    """(commands, output or None) of a block."""
    if block.language == "sh":
        return [(block.content, None)]
    if block.language == "yaml":
        return [(f"kubectl create -f - <<'EOF'\n{block.content}\nEOF", None)]
    steps = []
    for line in block.content.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in steps]


def commands_of(block):
    return "\n".join(command for command, _ in steps_of(block)) if block.content else ""


def differences(expected, actual, varies):
    """Lines of a diff between a page's output and the real one; none if they agree."""
    def rows(text):
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        cleaned = (re.sub(r"[ \t]+", " ", line).strip() for line in text.strip("\n").splitlines())
        return [re.sub(varies, "…", line) if varies else line for line in cleaned]

    shown, real = rows(expected), rows(actual)
    pattern = ""
    for row in shown:
        pattern += r"(?:.*\n)*" if row == "…" else ".*".join(map(re.escape, row.split("…"))) + r"\n"
    if re.fullmatch(pattern, "".join(f"{row}\n" for row in real)):
        return []
    return list(difflib.unified_diff(shown, real, "page", "output", lineterm="", n=1))


class Session:
    """Runs the commands of a page: one folder, and variables and the working directory from block to block."""

    def __init__(self, page, run_class):
        self.page, self.run_class = page, run_class
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="shed-docs."))
        self.work = self.folder / "work"
        self.work.mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "target"):
                (self.work / entry.name).symlink_to(entry)
        # What `make` builds, it builds in the repository itself.
        (self.work / "GNUmakefile").write_text(f".DEFAULT:\n\t@$(MAKE) --no-print-directory -C {ROOT} $@\n")
        self.namespace = re.sub(r"[^a-z0-9]+", "-", f"docs-{page.path.stem.lower()}")
        self.environment = dict(os.environ, TMPDIR=str(self.folder), PATH=f"{programs()}:{os.environ['PATH']}")
        # A page's make is its reader's, and not one that `make unit` started: that one prints the folder first.
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.environment.pop(name, None)
        (self.folder / "state").touch()
        (self.folder / "at").write_text(str(self.work))

    def __enter__(self):
        if self.run_class == "cluster":
            config = self.folder / "kubeconfig"
            config.write_text(self.kubectl("config", "view", "--raw", "--flatten"))
            config.chmod(0o600)
            self.environment["KUBECONFIG"] = str(config)
            self.kubectl("create", "namespace", self.namespace)
            self.kubectl("config", "set-context", "--current", f"--namespace={self.namespace}")
        return self

    def __exit__(self, *_):
        if self.run_class == "cluster":
            self.kubectl("delete", "deadlinejobs,jobs,cronjobs", "--all", "--cascade=foreground", "--timeout=120s")
            self.kubectl("delete", "namespace", self.namespace, "--ignore-not-found", "--wait=false")
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubectl(self, *arguments):
        done = subprocess.run(["kubectl", *arguments], env=self.environment, capture_output=True, text=True)
        if done.returncode:
            print(f"docs-commands: kubectl {' '.join(arguments)}: {done.stderr.strip()}", file=sys.stderr)
        return done.stdout

    def fill(self, commands):
        values = {"namespace": self.namespace, **self.page.values}
        filled = PLACEHOLDER.sub(lambda name: values.get(name[1], name[0]), commands)
        if self.run_class == "cluster":
            filled = filled.replace(IMAGE, os.environ.get("SHED_E2E_BUSYBOX", "localhost/busybox:test"))
        return filled

    def run(self, commands, limit):
        """(exit code, or None at the limit; standard output; standard error)"""
        script = f'. {self.folder}/state\ncd "$(cat {self.folder}/at)"\n' \
                 f"trap 'export -p >{self.folder}/state; pwd >{self.folder}/at' EXIT\nset -e\n{self.fill(commands)}\n"
        process = subprocess.Popen(["bash", "-c", script], cwd=self.work, env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            output, errors = process.communicate(timeout=limit)
            return process.returncode, output, errors
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, *process.communicate()

    def failure(self, block, output):
        """What went wrong with a block, or None. Of commands that are to fail, the page shows the error."""
        watch, wanted = block.option("watch"), int(block.option("exit", 0))
        varies = block.option("varies") or (output and output.option("varies"))
        for commands, expected in steps_of(block):
            code, actual, errors = self.run(commands, int(watch or TIME_LIMITS[self.run_class]))
            if code is None and not watch:
                return f"`{commands}` takes longer than {TIME_LIMITS[self.run_class]} s\n{actual}{errors}"
            if code not in (None, wanted):
                return f"`{commands}` ended with {code}\n{actual}{errors}"
            expected = output.content if output else expected
            if expected is not None and (diff := differences(expected, actual + errors * bool(wanted), varies)):
                return "\n".join([f"the output of `{commands}` differs", *diff])
        return None


def programs():
    """The folders of shed-sim and shed-lab for PATH. The caller has built the first, and for `verify` the second."""
    target = os.environ.get("CARGO_TARGET_DIR")
    folders = [ROOT / target] if target else [ROOT / "target", ROOT / "research/target"]
    return os.environ.get("SHED_PROGRAMS") or ":".join(str(folder / "debug") for folder in folders)


def run_page(page, run_class):
    """(number of blocks that ran, number that failed); a page ends at its first failure."""
    chosen = [block for block in page.blocks if block.is_commands and block.run_class == run_class]
    if not chosen:
        return 0, 0
    shown = outputs(page)[0]
    with Session(page, run_class) as session:
        for count, block in enumerate(chosen, 1):
            if failure := session.failure(block, shown.get(block.line)):
                print(f"{page.name}:{block.line}: {failure}", file=sys.stderr)
                return count, 1
    return len(chosen), 0


def list_not_run(pages):
    for page in pages:
        for block in page.blocks:
            if block.run_class == "not-run":
                print(f"{page.name}:{block.line}: {' '.join(block.words[1:])}")
    return 0


def main(arguments):
    pages = [read_page(pathlib.Path(name).resolve()) for name in arguments[1:]] or \
        [read_page(path) for pattern in TASK_PAGES for path in sorted(ROOT.glob(pattern))]
    mode = arguments[0] if arguments else ""
    if mode == "--list":
        return list_not_run(pages)
    if mode != "--check" and mode not in RUN_CLASSES:
        print(f"usage: docs-commands.py --check | --list | {' | '.join(RUN_CLASSES)} [FILE...]", file=sys.stderr)
        return 2
    found = [(page, *problem) for page in pages for problem in problems(page)]
    for page, line, problem in found:
        print(f"{page.name}:{line}: {problem}", file=sys.stderr)
    if found:
        return 1
    counts = []
    if mode in RUN_CLASSES:
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME[mode]) as pool:
            counts = list(pool.map(lambda page: run_page(page, mode), pages))
    ran, failed = (sum(column) for column in zip(*counts)) if counts else (0, 0)
    print(f"docs-commands: {len(pages)} pages" if mode == "--check" else
          f"docs-commands: {ran} blocks of class {mode}, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
