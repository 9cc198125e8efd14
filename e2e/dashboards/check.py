"""Tests of dashboards without a Grafana: their form, and files with their queries for promtool."""

import json
import pathlib
import re

import exported

# What Grafana replaces in a query. The longer names come first.
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$namespace": "team", "$budget": "0.01", "$job": "count"}
METRIC = re.compile(r"\b(?:shed|process)_[a-z0-9_]+")
RATE = re.compile(r"\b(?:rate|increase)\(([a-z0-9_]+)")
# Labels in groupings and selectors of a query.
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
MATCHED = re.compile(r'\b([a-z_]+)(?:=|=~|!=|!~)"')
IDENTIFIER = re.compile(r"[a-z0-9-]{1,40}")
# Labels that a scrape sets, and values of labels that queries select.
SCRAPED = {"namespace": "team", "job": "shed", "instance": "10.0.0.1:8080", "pod": "shed-0"}
BOUNDS = ("0", "0.5", "0.9", "0.99", "1", "+Inf")
SELECTED = {"job_namespace": "team", "job_name": "count", "kind": "clone", "outcome": "won"}


def panels(board):
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def without_variables(expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def labels_in(expression):
    grouped = [label for group in GROUPED.findall(expression) for label in group.split(", ")]
    return set(grouped + MATCHED.findall(expression))


def query_faults(expression, metrics, legend=""):
    """`metrics` has that of each exported series."""
    used = set(METRIC.findall(expression))
    for name in sorted(used - metrics.keys()):
        yield f"shed exports no metric {name}"
    known = {"le", *SCRAPED}.union(*(metrics[name].labels for name in used & metrics.keys()))
    for label in sorted((labels_in(expression) | set(re.findall(r"\{\{(\w+)\}\}", legend))) - known):
        yield f"no metric of the query has the label {label}"
    for name in RATE.findall(expression):
        if name in metrics and not metrics[name].grows:
            yield f"rate of {name}, which does not only grow"
    # Grafana leaves the group of a label_replace as it is, because no variable begins with a digit.
    if "$" in without_variables(expression).replace('"$1"', ""):
        yield f"a variable without a value: {expression}"


def place_faults(board):
    taken = {}
    for panel in board["panels"]:
        grid = panel["gridPos"]
        cells = [(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])]
        if any(x > 23 for x, _ in cells):
            yield f"{panel['title']}: beyond the edge"
        for other in {taken[cell] for cell in cells if cell in taken}:
            yield f"{panel['title']}: covers {other}"
        taken |= dict.fromkeys(cells, panel["title"])


def panel_faults(panel, variables, metrics):
    for part in ("title", "description", "targets"):
        if not panel.get(part):
            yield f"no {part}"
    if not panel["fieldConfig"]["defaults"].get("unit"):
        yield "no unit"
    for target in panel["targets"]:
        if target["datasource"]["uid"] != "${datasource}":
            yield "a data source of its own"
        for name in sorted(set(re.findall(r"\$([a-z]\w*)", target["expr"])) - variables.keys()):
            yield f"there is no variable {name}"
        yield from query_faults(target["expr"], metrics, target["legendFormat"])


def board_faults(board, metrics):
    """The faults of one dashboard, one line each."""
    if not IDENTIFIER.fullmatch(board["uid"]):
        yield f"uid {board['uid']}: not 1 to 40 lowercase letters, digits and hyphens"
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    for name in sorted({"datasource", "namespace"} - variables.keys()):
        yield f"no variable {name}"
    for name, variable in variables.items():
        for fault in query_faults(variable.get("definition", ""), metrics):
            yield f"variable {name}: {fault}"
    identifiers = [panel["id"] for panel in board["panels"]]
    if len(set(identifiers)) != len(identifiers):
        yield "two panels have one id"
    yield from place_faults(board)
    for panel in panels(board):
        for fault in panel_faults(panel, variables, metrics):
            yield f"{panel['title']}: {fault}"


def faults(files):
    """The faults of the dashboards in these files."""
    metrics = {name: metric for metric in exported.metrics() for name in metric.series()}
    uids = {}
    for file in files:
        board = json.loads(pathlib.Path(file).read_text())
        for fault in board_faults(board, metrics):
            yield f"{file}: {fault}"
        # Links and bookmarks name the uid, so it follows from the name of the file.
        if board["uid"] != "shed-" + pathlib.Path(file).stem:
            yield f"{file}: the uid is {board['uid']}"
        if uids.setdefault(board["uid"], file) != file:
            yield f"{file}: {uids[board['uid']]} has the same uid"


def queries(files):
    """(dashboard, panel, query) of these files, with values for the variables."""
    for file in files:
        board = json.loads(pathlib.Path(file).read_text())
        for panel in panels(board):
            for target in panel["targets"]:
                yield board["uid"], panel["id"], without_variables(target["expr"])


def rules(files):
    """A rule file with one recording rule per query."""
    found = [{"record": f"query:{number}", "expr": query} for number, (_, _, query) in enumerate(queries(files))]
    return {"groups": [{"name": "dashboards", "rules": found}]}


def sample_series(metric):
    """Series of a metric over two hours: counters grow, gauges stay."""
    labels = {**SCRAPED, **{label: SELECTED.get(label, "x") for label in metric.labels}}
    # A deadline in the future, a leader, capacity that is not 0.
    values = "0+1x120" if metric.kind != "gauge" else "9000x120" if "timestamp" in metric.name else "1x120"
    for name in metric.series():
        limit = "le" if name.endswith("_bucket") else "at_most"
        for bound in BOUNDS if limit == "le" or limit in labels else ("",):
            pairs = ",".join(f'{label}="{value}"' for label, value in {**labels, **({limit: bound} if bound else {})}.items())
            yield {"series": f"{name}{{{pairs}}}", "values": values}


def samples(files):
    """A test file: where each metric has a series, each query returns data."""
    series = [series for metric in exported.metrics() for series in sample_series(metric)]
    expectations = [{"expr": f"absent({query})", "eval_time": "2h", "exp_samples": []} for _, _, query in queries(files)]
    return {"evaluation_interval": "1m", "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": expectations}]}


def differing(files, manifest):
    """The dashboards that a manifest of the chart has in another form."""
    blocks = re.findall(r"^  (\S+\.json): \|\n((?:    .*\n)+)", manifest, re.MULTILINE)
    rendered = {name: json.loads(text) for name, text in blocks}
    for file in map(pathlib.Path, files):
        if rendered.pop(f"shed-{file.name}", None) != json.loads(file.read_text()):
            yield f"{file}: the chart renders another one, or none"
    yield from (f"{name}: there is no such file" for name in rendered)
