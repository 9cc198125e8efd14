"""The metrics that the operator exports, read from the generated reference."""

import pathlib
import re
from dataclasses import dataclass

REFERENCE = pathlib.Path("docs/reference/metrics.md")
ROW = re.compile(r"^\| `([a-z0-9_]+)` \| (counter|gauge|histogram) \| (.*?) \| (.*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    labels: tuple
    meaning: str

    @property
    def grows(self):
        """Whether it has a rate."""
        return self.kind != "gauge"

    def series(self):
        """The names of its series."""
        return [self.name + suffix for suffix in ("_bucket", "_sum", "_count")] if self.kind == "histogram" else [self.name]


def metrics():
    rows = ROW.findall(REFERENCE.read_text())
    return [Metric(name, kind, tuple(re.findall(r"`(\w+)`", labels)), meaning) for name, kind, labels, meaning in rows]
