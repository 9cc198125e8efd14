#!/usr/bin/env python3
"""Prints a page of Prometheus with one series of each metric that the operator exports, from the generated reference.

  e2e/metrics-page.py | promtool check metrics      as `make alerts` does it
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "dashboards"))
import exported  # noqa: E402


def samples(metric):
    """The lines of one series. Each bucket, sum and count of a histogram is 1."""
    labels = [f'{label}="x"' for label in metric.labels]
    for name in metric.series():
        own = [*labels, 'le="+Inf"'] if name.endswith("_bucket") and metric.kind == "histogram" else labels
        yield f"{name}{{{','.join(own)}}} 1" if own else f"{name} 1"


metrics = exported.metrics()
if len(metrics) < 50:
    sys.exit(f"{exported.REFERENCE} has only {len(metrics)} metrics that this program can read")
for metric in metrics:
    meaning = metric.meaning.replace("\\", "\\\\")
    print(f"# HELP {metric.name} {meaning}", f"# TYPE {metric.name} {metric.kind}", *samples(metric), sep="\n")
