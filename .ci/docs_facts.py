"""Facts that stand in several pages, and names of the code in pages. .ci/docs-links checks them, and --write fills them in.

A fact has one home, and other pages include it: `<!-- fact: NAME -->VALUE<!-- /fact -->`. Its home is a marker
`<!-- fact-home: NAME -->VALUE<!-- /fact -->` in a page, or a cell of a table, which docs/facts.yaml names by page and heading:

  NAME: {row: REGEX, column: HEADER, digits: N, times: FACTOR, pick: min or max}

The row's cells before the column, joined by ` | `, match REGEX. Of the cell, the first number counts, times FACTOR and
with N digits. Without `digits` the whole cell counts, or what `match: REGEX` finds in it.
"""

import functools
import pathlib
import re
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOME = re.compile(r"<!-- fact-home: ([a-z0-9-]+) -->(.*?)<!-- /fact -->", re.DOTALL)
USE = re.compile(r"<!-- fact: ([a-z0-9-]+) -->(.*?)<!-- /fact -->", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:[.]\d+)?")
# Pages whose conditions, reasons, events and label values are names of the code.
NAMED = re.compile(r"docs/(?:runbooks|reference/(?:conditions|metrics|alerts|operator)|how-to/troubleshoot)[.]md")
CAMEL = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
# Names of Kubernetes, Prometheus and Helm, which no code of shed has.
FOREIGN = {"CrashLoopBackOff", "PrometheusRule", "PodMonitor", "ServiceMonitor"}


def cells(page, under):
    """Each row of the tables below a heading of a page: the header's cells, and the row's."""
    header, heading = None, None
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        if not line.startswith("|"):
            header = None
        elif heading == under and not line.startswith("|---"):
            row = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if header is not None:
                yield header, row
            header = header or row


def cell(name, page, under, row, column, digits=None, times=1, match=".*", pick=None):
    """The value of a fact whose home is a table."""
    found = [line[at] for header, line in cells(page, under) if column in header
             for at in [header.index(column)] if at < len(line) and re.fullmatch(row, " | ".join(line[:at]))]
    if not found or (len(found) > 1 and pick is None):
        raise ValueError(f"docs/facts.yaml: {name} has {len(found)} rows in {page}")
    if digits is None:
        return re.search(match, found[0])[0]
    values = [float(NUMBER.search(text)[0]) for text in found]
    return f"{ {'min': min, 'max': max}.get(pick, max)(values) * times:.{digits}f}"


@functools.cache
def facts():
    """The value of each fact by its name."""
    pages = yaml.safe_load((ROOT / "docs/facts.yaml").read_text(encoding="utf-8"))
    known = {name: cell(name, page, under, **home) for page, headings in pages.items()
             for under, homes in headings.items() for name, home in homes.items()}
    for page in sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")):
        for name, value in HOME.findall(page.read_text(encoding="utf-8")):
            if name in known:
                raise ValueError(f"the fact {name} has two homes, one of them in {page.name}")
            known[name] = value
    return known


def filled(text):
    return USE.sub(lambda use: f"<!-- fact: {use[1]} -->{facts().get(use[1], use[2])}<!-- /fact -->", text)


def fact_problems(text):
    """Yields (line, problem) of the facts that a page includes."""
    for use in USE.finditer(text):
        value = facts().get(use[1])
        if value != use[2]:
            what = "has no home" if value is None else f"is {value}, not {use[2]}: run .ci/docs-links --write"
            yield text.count("\n", 0, use.start()) + 1, f"the fact {use[1]} {what}"


@functools.cache
def code():
    """The sources of the product without tests and comments, and the chart's rules."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "src/*.rs", "crates/*.rs", "charts/shed/files/alerts.yaml"],
                            check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.split() if "tests" not in name]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).exists()]
    return re.sub(r"^\s*//.*$", "", "\n".join(texts), flags=re.MULTILINE)


def name_problems(text):
    """Yields (line, problem) of names in a page that no code has."""
    for number, line in enumerate(text.splitlines(), 1):
        words = [word for span in re.findall(r"`([^`]+)`", line) for word in CAMEL.findall(span) if span == word]
        labels = [value for value in re.findall(r'\b\w+="([A-Za-z_]+)"', line)]
        if re.search(r"`shed_\w+\{\w+\}`", line):
            labels += re.findall(r"`([a-z_]+)`", line)
        for word in set(words + labels) - FOREIGN:
            is_known = re.search(rf"\b{word}\b" if word in words else rf'"{word}"', code())
            if not is_known:
                yield number, f"no code of shed has `{word}`"
