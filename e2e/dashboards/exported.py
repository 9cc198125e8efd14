"""The metrics that the operator exports, read from the sources that register them."""

import pathlib
import re
from dataclasses import dataclass

SOURCES = ("src/metrics.rs", "src/metrics", "src/lease/metrics.rs", "src/durable_state/metrics.rs")
REGISTERED = re.compile(r'\b(counter|sum|gauge|count|histogram)s?\(\s*"(shed_[a-z0-9_]+)"')
LABELS = re.compile(r'\[("[a-z_]+"(?:, "[a-z_]+")*)\]')
# Those of the process collector, which the operator registers as a whole.
PROCESS = ("cpu_seconds_total", "open_fds", "max_fds", "virtual_memory_bytes", "resident_memory_bytes", "start_time_seconds", "threads")


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    labels: tuple

    def series(self):
        """The names of its series."""
        return [self.name + suffix for suffix in ("_bucket", "_sum", "_count")] if self.kind == "histogram" else [self.name]


def registered(text):
    """The metrics that one source registers."""
    found = list(REGISTERED.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends):
        kind, name = match.groups()
        # In jobs.rs one closure adds the labels of all.
        labels = LABELS.search(text, match.end(), end) or (name.startswith("shed_job_") and kind == "gauge" and LABELS.search(text))
        yield Metric(name, kind, tuple(re.findall(r'"([a-z_]+)"', labels[1])) if labels else ())


def metrics():
    found = [Metric(f"process_{name}", "counter" if name.endswith("_total") else "gauge", ()) for name in PROCESS]
    for source in map(pathlib.Path, SOURCES):
        for file in sorted(source.glob("*.rs")) if source.is_dir() else [source]:
            found += registered(file.read_text())
    return found
