"""Panels and dashboards as Grafana reads them (schema version 39, Grafana 10.4 and newer)."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Rows of the grid have 24 columns.
COLUMNS = 24
# To the other dashboards, with the same time range.
LINK = {"asDropdown": False, "includeVars": False, "keepTime": True, "tags": ["shed"], "title": "shed", "type": "dashboards"}
GREEN, ORANGE, RED = "green", "orange", "red"


def steps(base, *above):
    """Thresholds: the color below the first value, and (value, color) from each value on."""
    colors = [{"color": base, "value": None}] + [{"color": color, "value": value} for value, color in above]
    return {"mode": "absolute", "steps": colors}


def query(expression, legend="", instant=False, table=False):
    """A query without its letter, which the panel gives."""
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": expression,
        "format": "table" if table else "time_series",
        "instant": instant,
        "legendFormat": legend or "__auto",
        "range": not instant,
    }


def datasource_variable():
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "refresh": 1,
        "regex": "",
    }


def label_variable(name, label, series, of, several):
    """The values of the label `of` of the series; `several` allows more than one, and all."""
    variable = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": f"label_values({series}, {of})",
        "query": {"qryType": 1, "query": f"label_values({series}, {of})", "refId": name},
        "current": {},
        "hide": 0,
        "includeAll": several,
        "multi": several,
        # Jobs come and go, so the values are those of the dashboard's time range.
        "refresh": 2,
        "regex": "",
        "sort": 1,
    }
    if several:
        variable["allValue"] = ".*"
        variable["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return variable


def text_variable(name, label, value):
    current = {"selected": True, "text": value, "value": value}
    return {"name": name, "label": label, "type": "textbox", "query": value, "current": current, "hide": 0, "options": [current]}


class Dashboard:
    """A dashboard whose panels flow from left to right, in rows with a title."""

    def __init__(self, uid, title, description, variables, span="now-24h"):
        self.uid, self.title, self.description = uid, title, description
        self.variables, self.span = variables, span
        self.panels = []
        self.x = self.y = self.height = 0

    def _place(self, kind, title, width, height, **parts):
        if self.x + width > COLUMNS:
            self._next_line()
        grid = {"h": height, "w": width, "x": self.x, "y": self.y}
        self.panels.append({"id": len(self.panels) + 1, "type": kind, "title": title, "gridPos": grid, **parts})
        self.x += width
        self.height = max(self.height, height)

    def _next_line(self):
        self.y += self.height
        self.x = self.height = 0

    def _panel(self, kind, title, unit, description, queries, width, height, options, custom=None, **field):
        defaults = {"unit": unit, **field}
        if custom is not None:
            defaults["custom"] = custom
        overrides = defaults.pop("overrides", [])
        transformations = defaults.pop("transformations", [])
        self._place(
            kind,
            title,
            width,
            height,
            description=description,
            datasource=DATASOURCE,
            fieldConfig={"defaults": defaults, "overrides": overrides},
            options=options,
            targets=[{**part, "refId": chr(ord("A") + number)} for number, part in enumerate(queries)],
            transformations=transformations,
        )

    def row(self, title):
        self._next_line()
        self._place("row", title, COLUMNS, 1, collapsed=False, panels=[])

    def stat(self, title, unit, description, expression, width=4, thresholds=None, legend="", **field):
        """One number, as it is at the end of the time range, or instead of it the legend."""
        options = {
            "colorMode": "value" if thresholds else "none",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "name" if legend else "value",
        }
        field["color"] = {"mode": "thresholds"}
        field["thresholds"] = thresholds or steps("text")
        self._panel("stat", title, unit, description, [query(expression, legend, instant=True)], width, 4, options, **field)

    def lines(self, title, unit, description, *queries, width=8, stacked=False, bars=False, thresholds=None, **field):
        """Series over time; `queries` are (expression, legend)."""
        custom = {
            "drawStyle": "bars" if bars else "line",
            "fillOpacity": 80 if bars else 30 if stacked else 5,
            "lineWidth": 1,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
            "thresholdsStyle": {"mode": "dashed" if thresholds else "off"},
        }
        options = {
            "legend": {"calcs": ["lastNotNull"], "displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
        field["color"] = {"mode": "palette-classic"}
        field["thresholds"] = thresholds or steps("text")
        queries = [query(expression, legend) for expression, legend in queries]
        self._panel("timeseries", title, unit, description, queries, width, 8, options, custom, **field)

    def states(self, title, unit, description, expression, legend, mappings, width=8):
        """One bar per series, with the color of its value."""
        values = {str(value): {"color": color, "index": value, "text": text} for value, text, color in mappings}
        self._panel(
            "state-timeline",
            title,
            unit,
            description,
            [query(expression, legend)],
            width,
            8,
            {
                "alignValue": "left",
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
                "mergeValues": True,
                "rowHeight": 0.8,
                "showValue": "auto",
                "tooltip": {"mode": "single", "sort": "none"},
            },
            {"fillOpacity": 70, "lineWidth": 0},
            mappings=[{"type": "value", "options": values}],
        )

    def heat(self, title, unit, description, expression, width=8):
        """A heat map of a histogram's buckets."""
        options = {
            "calculate": False,
            "cellGap": 1,
            "cellValues": {"unit": "short"},
            "color": {
                "exponent": 0.5,
                "fill": "dark-orange",
                "mode": "scheme",
                "reverse": False,
                "scale": "exponential",
                "scheme": "Oranges",
                "steps": 64,
            },
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": True},
            "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
        }
        part = {**query(expression, "{{le}}"), "format": "heatmap"}
        custom = {"scaleDistribution": {"type": "linear"}}
        self._panel("heatmap", title, unit, description, [part], width, 9, options, custom)

    def table(self, title, unit, description, keys, columns, link=None, width=COLUMNS):
        """One line per job or run. `keys` are (label, heading), `columns` (expression, heading, unit). The last key has the link."""
        headings = {f"Value #{chr(ord('A') + number)}": heading for number, (_, heading, _) in enumerate(columns)}
        names = {**dict(keys), **headings}
        overrides = [
            {"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": column_unit}]}
            for _, heading, column_unit in columns
        ]
        if link:
            links = [{"title": link[0], "url": link[1]}]
            overrides.append({"matcher": {"id": "byName", "options": keys[-1][1]}, "properties": [{"id": "links", "value": links}]})
        order = {name: number for number, name in enumerate(names)}
        self._panel(
            "table",
            title,
            unit,
            description,
            [query(expression, instant=True, table=True) for expression, _, _ in columns],
            width,
            10,
            {"cellHeight": "sm", "footer": {"show": False}, "showHeader": True, "sortBy": [{"desc": False, "displayName": columns[0][1]}]},
            {"align": "auto"},
            overrides=overrides,
            transformations=[
                {"id": "merge", "options": {}},
                {"id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": names}},
            ],
        )

    def json(self):
        """The dashboard without what Grafana fills in itself."""
        return {
            "annotations": {"list": []},
            "description": self.description,
            "editable": True,
            "graphTooltip": 1,
            "links": [LINK],
            "panels": self.panels,
            "refresh": "30s",
            "schemaVersion": 39,
            "tags": ["shed"],
            "templating": {"list": self.variables},
            "time": {"from": self.span, "to": "now"},
            "timezone": "browser",
            "title": self.title,
            "uid": self.uid,
            "version": 1,
        }
