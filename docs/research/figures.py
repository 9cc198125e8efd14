#!/usr/bin/env python3
"""Figures in docs/research/pictures and tables of pages of docs/research, from docs/research/data.

  docs/research/figures.py           writes them
  docs/research/figures.py --check   fails if one of them differs, and changes nothing

In Markdown it replaces the lines between `<!-- figures.py: NAME -->` and `<!-- end -->`.
"""

import collections
import csv
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
PAGES = [HERE / name for name in ("results.md", "method.md", "shed-prime-ideas.md")]
# Colors that readers with color blindness can tell apart.
COLORS = {"shed-prime": "#0072B2", "shed-plus": "#D55E00", "s-resume-event": "#009E73"}
NO_CLONES = ("hadoop-ns", "#8250DF")
FACTOR = "1.5"
# One line per preset of docs/reference/simulator.md#presets; the order is that of the figures.
PRESETS = {
    "A": "heavy tails",
    "Ar": "A, clones start over",
    "aL": "A, launch takes 60 s",
    "aS": "A, half slow by size",
    "an": "A, no reports",
    "C": "slots become slow",
    "G": "Google 2011",
    "Gn": "G, no preemption",
    "Gr": "Gn, clones start over",
    "G1": "G, clones repeat",
    "GJ": "G, jittered deadlines",
    "P": "Google 2011, second",
    "Y": "Yahoo",
    "F": "Facebook 2010",
    "T": "TPC-H on Spark",
    "Gm": "G on slow slots",
    "Pm": "P on slow slots",
    "Ym": "Y on slow slots",
    "Fm": "F on slow slots",
    "Tm": "T on slow slots",
}


def rows(name):
    """The rows of a file; of those that tell preemption apart the ones without it."""
    with open(HERE / "data" / f"{name}.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if row.get("preemption", "never") == "never"]


def bare(policy):
    """The name of a policy without its parameters."""
    return policy.split("{")[0]


def mean(values):
    values = [float(value) for value in values]
    return sum(values) / len(values)


class Svg:
    """A figure on a white card, so that its text is readable on dark pages too."""

    def __init__(self, width, height, label):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}" '
            'font-family="sans-serif" font-size="12" fill="#1f2328">',
            f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        ]

    def text(self, x, y, text, **attributes):
        self.add("text", {"x": x, "y": y, **attributes}, text)

    def line(self, points, color, **attributes):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add("polyline", {"points": points, "fill": "none", "stroke": color, **attributes})

    def add(self, name, attributes, text=None):
        written = "".join(f' {key.replace("_", "-")}="{short(value)}"' for key, value in attributes.items())
        self.parts.append(f"<{name}{written}/>" if text is None else f"<{name}{written}>{text}</{name}>")

    def whole(self):
        return "\n".join([*self.parts, "</svg>", ""])


def short(value):
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def legend(svg, x, y, entries):
    for name, color, dash in entries:
        svg.line([(x, y - 4), (x + 24, y - 4)], color, stroke_width=2, stroke_dasharray=dash)
        svg.text(x + 30, y, name)
        x += 52 + 7 * len(name)


def small_multiples():
    """Deadlines met over the load, one panel per preset."""
    cells = collections.defaultdict(list)
    for row in rows("league-presets") + rows("no-clones"):
        if row["k"] == FACTOR:
            cells[row["preset"]].append(row)
    svg = Svg(960, 640, "Deadlines met in percent over the load, for 15 presets and four policies")
    lines = [*COLORS.items(), ("no clones", NO_CLONES[1])]
    legend(svg, 40, 24, [*((name, color, "none") for name, color in lines), ("bound", "#57606a", "4 3")])
    for position, preset in enumerate(name for name in PRESETS if name in cells):
        left, top = 40 + position % 5 * 184, 66 + position // 5 * 192
        panel(svg, left, top, preset, cells[preset])
    svg.text(480, 632, f"load (vertical axis: deadlines met in %, k {FACTOR})", text_anchor="middle")
    return svg.whole()


def panel(svg, left, top, preset, cell):
    width, height = 138, 124
    at = lambda load, met: (left + (float(load) - 0.4) / 1.1 * width, top + height * (1 - float(met) / 100))
    svg.text(left, top - 8, f'<tspan font-weight="bold">{preset}</tspan> {PRESETS[preset]}')
    for met in (0, 50, 100):
        svg.line([at(0.4, met), at(1.5, met)], "#d0d7de")
        svg.text(left - 6, at(0, met)[1] + 4, met, text_anchor="end", font_size=10)
    for load in ("0.4", "0.8", "1.5"):
        svg.text(at(load, 0)[0], top + height + 14, load, text_anchor="middle", font_size=10)
    series = collections.defaultdict(list)
    for row in sorted(cell, key=lambda row: float(row["load"])):
        series[row["policy"]].append(at(row["load"], row["met_percent"]))
        if row["policy"] == "shed-plus":
            series["bound"].append(at(row["load"], row["bound_percent"]))
    svg.line(series["bound"], "#57606a", stroke_dasharray="4 3")
    svg.line(series[NO_CLONES[0]], NO_CLONES[1], stroke_width=2)
    for name in reversed(COLORS):
        svg.line(series[name], COLORS[name], stroke_width=2)


def heat_map():
    """Deadlines met by each policy on each preset, at one load."""
    load = "0.95"
    met = {(bare(row["policy"]), row["preset"]): float(row["met_percent"]) for row in rows("league-all") if row["load"] == load}
    policies = ranking()
    left, top, width, height = 130, 64, 41, 24
    svg = Svg(960, top + height * len(policies) + 34, f"Deadlines met in percent by 15 policies on 20 presets at load {load}")
    svg.text(left, 22, f"Deadlines met in %, load {load}, k {FACTOR}", font_weight="bold")
    for column, preset in enumerate(PRESETS):
        svg.text(left + (column + 0.5) * width, top - 8, preset, text_anchor="middle")
    for line, policy in enumerate(policies):
        y = top + line * height
        svg.text(left - 8, y + 16, policy, text_anchor="end")
        for column, preset in enumerate(PRESETS):
            value = met[policy, preset]
            x = left + column * width
            svg.add("rect", {"x": x, "y": y, "width": width, "height": height, "fill": shade(value)})
            color = "#ffffff" if value > 68 else "#1f2328"
            svg.text(x + width / 2, y + 16, f"{value:.0f}", text_anchor="middle", fill=color)
    svg.text(left, top + height * len(policies) + 20, "Policies in the order of their mean over the excerpts of league-all.csv.", fill="#57606a")
    return svg.whole()


def shade(percent):
    """From nearly white at 0 to dark blue at 100."""
    light, dark = (241, 246, 252), (8, 69, 130)
    return "#" + "".join(f"{round(a + (b - a) * percent / 100):02x}" for a, b in zip(light, dark))


def reliability():
    """Deadlines met over the predicted PoCD; the area of a point is the number of jobs."""
    svg = Svg(960, 400, "Share of jobs that met their deadline over their PoCD, at 25 and at 75 percent of the time to the deadline")
    legend(svg, 60, 24, [("shed-prime", COLORS["shed-prime"], "none"), ("shed-plus", COLORS["shed-plus"], "none"), ("met as predicted", "#57606a", "4 3")])
    for position, (preset, moment) in enumerate((preset, moment) for preset in "AG" for moment in ("25", "75")):
        left, top, size = 60 + position * 230, 76, 176
        at = lambda predicted, met: (left + predicted / 100 * size, top + size * (1 - met / 100))
        svg.text(left, top - 26, f"{preset}: {PRESETS[preset]}", font_weight="bold")
        svg.text(left, top - 10, f"at {moment} % of the time", fill="#57606a")
        for value in (0, 50, 100):
            svg.line([at(0, value), at(100, value)], "#d0d7de")
            svg.text(left - 6, at(0, value)[1] + 4, value, text_anchor="end", font_size=10)
            svg.text(at(value, 0)[0], top + size + 16, value, text_anchor="middle", font_size=10)
        svg.line([at(0, 0), at(100, 100)], "#57606a", stroke_dasharray="4 3")
        for row in rows("reliability"):
            if (row["preset"], row["moment_percent"]) == (preset, moment):
                x, y = at(float(row["predicted_percent"]), float(row["met_percent"]))
                radius = max(2.0, (float(row["jobs"]) / 12) ** 0.5)
                svg.add("circle", {"cx": x, "cy": y, "r": radius, "fill": COLORS[bare(row["policy"])], "fill_opacity": "0.65"})
    svg.text(480, 294, "predicted PoCD in %", text_anchor="middle")
    svg.text(60, 330, "Vertical axis: share of these jobs that met their deadline, in %. The area of a circle is the number of jobs.")
    svg.text(60, 350, "Above the dashed line the PoCD was too low: clones and restarts that came later saved jobs.")
    svg.text(60, 380, "Data: docs/research/data/reliability.csv, load 0.8.", fill="#57606a")
    return svg.whole()


def price():
    """Deadlines met over clones per task: shed-prime at each price of a clone, and other policies."""
    load = "0.6"
    svg = Svg(960, 330, f"Deadlines met over clones per task at several prices of a clone, load {load}")
    others = {**COLORS, "hadoop-ns": "#57606a"}
    del others["shed-prime"]
    legend(svg, 50, 24, [("shed-prime at prices from 0 to 0.1", COLORS["shed-prime"], "none"), *((*other, "2 3") for other in others.items())])
    for position, preset in enumerate(("A", "aL", "C", "G")):
        left, top, width, height = 50 + position * 232, 74, 180, 176
        at = lambda clones, met: (left + float(clones) / 4 * width, top + height * (1 - float(met) / 100))
        svg.text(left, top - 12, f'<tspan font-weight="bold">{preset}</tspan> {PRESETS[preset]}')
        for value in (0, 50, 100):
            svg.line([at(0, value), at(4, value)], "#d0d7de")
            svg.text(left - 6, at(0, value)[1] + 4, value, text_anchor="end", font_size=10)
        for value in range(5):
            svg.text(at(value, 0)[0], top + height + 16, value, text_anchor="middle", font_size=10)
        cell = [row for row in rows("frontier") if (row["preset"], row["load"]) == (preset, load)]
        own = sorted((row for row in cell if row["clone_price"]), key=lambda row: float(row["clone_price"]))
        svg.line([at(row["clones_per_task"], row["met_percent"]) for row in own], COLORS["shed-prime"])
        for row in own:
            x, y = at(row["clones_per_task"], row["met_percent"])
            chosen = row["clone_price"] == "0.02"
            svg.add("circle", {"cx": x, "cy": y, "r": 6 if chosen else 3, "fill": COLORS["shed-prime"]})
        for row in cell:
            if row["policy"] in others:
                x, y = at(row["clones_per_task"], row["met_percent"])
                svg.add("rect", {"x": x - 4, "y": y - 4, "width": 8, "height": 8, "fill": others[row["policy"]]})
    svg.text(480, 292, "clones per task (vertical axis: deadlines met in %)", text_anchor="middle")
    svg.text(50, 318, f"The large circle is the default price, 0.02. Data: docs/research/data/frontier.csv, load {load}, k {FACTOR}.", fill="#57606a")
    return svg.whole()


def ranking():
    """All policies, the highest mean over excerpts first."""
    met = collections.defaultdict(list)
    for row in rows("league-all"):
        if KIND_OF[row["preset"]] == "excerpt":
            met[bare(row["policy"])].append(row["met_percent"])
    return sorted(met, key=lambda policy: (-round(mean(met[policy]), 1), policy))


def table_policies():
    """Every policy by the kind of preset, with its rank there."""
    cells = collections.defaultdict(list)
    for row in rows("league-all"):
        cells[bare(row["policy"])].append(row)
    kinds = [kind for kind in dict.fromkeys(KIND_OF.values()) if any(KIND_OF[row["preset"]] == kind for row in cells["shed-prime"])]
    met = {(policy, kind): mean(row["met_percent"] for row in mine if KIND_OF[row["preset"]] == kind) for policy, mine in cells.items() for kind in kinds}
    rank = lambda policy, kind: 1 + sum(round(met[other, kind], 1) > round(met[policy, kind], 1) for other in cells)
    lines = ["| policy | " + " | ".join(kinds) + " | clones per task | slot-seconds relative to shed-plus |", "|---" * (len(kinds) + 3) + "|"]
    for policy in ranking():
        mine = cells[policy]
        average = lambda column: mean(row[column] for row in mine)
        figures = " | ".join(f"{met[policy, kind]:.1f} ({rank(policy, kind)})" for kind in kinds)
        lines.append(f"| `{policy}` | {figures} | {average('clones_per_task'):.2f} | {average('slot_seconds_ratio'):.2f} |")
    return lines


def table_cells():
    """How often shed-prime is behind, in the cells of three deadline factors."""
    lines = ["| compared with | cells | behind | by more than 1 point | worst cell | points there |", "|---|---|---|---|---|---|"]
    mine = [row for row in rows("league-presets") if row["policy"] == "shed-prime"]
    for rival, column in (("shed-plus", "points_to_shed_plus"), ("s-resume-event", "points_to_s_resume_event")):
        points = {(row["preset"], row["load"], row["k"]): float(row[column]) for row in mine}
        worst = min(points, key=lambda cell: (points[cell], cell))
        lines.append(
            f"| `{rival}` | {len(points)} | {sum(p < 0 for p in points.values())} | {sum(p < -1 for p in points.values())} | "
            f"{worst[0]}, load {worst[1]}, k {worst[2]} | −{-points[worst]:.1f} |"
        )
    return lines


def kinds_of_method():
    """The kind and the presets of each row of the table of method.md."""
    table = (HERE / "method.md").read_text().split("| kind | presets |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")]
        yield cells[1], cells[2].split(", ")


KIND_OF = {preset: kind for kind, presets in kinds_of_method() for preset in presets}


def table_kinds():
    """Means over the loads, by the kind of preset and what it is made from, at one deadline factor."""
    cells = collections.defaultdict(list)
    for row in rows("league-presets") + rows("no-clones"):
        if row["k"] == FACTOR:
            cells[row["preset"], row["policy"]].append(row["met_percent"])
    policies = [*COLORS, NO_CLONES[0]]
    lines = ["| kind | presets | " + " | ".join(f"`{name}`" for name in policies) + " |", "|---" * (len(policies) + 2) + "|"]
    for kind, presets in kinds_of_method():
        if presets[0] not in {preset for preset, _ in cells}:
            continue
        means = (mean(met for preset in presets for met in cells[preset, policy]) for policy in policies)
        lines.append(f"| {kind} | {', '.join(presets)} | " + " | ".join(f"{value:.1f}" for value in means) + " |")
    return lines


def table_ahead():
    """The policies of the papers against no clones, at two loads."""
    best, base = {}, {}
    for row in rows("league-all"):
        cell, met = (row["preset"], row["load"]), float(row["met_percent"])
        if row["policy"] == NO_CLONES[0]:
            base[cell] = met
        elif bare(row["policy"]) != "shed-prime" and met > best.get(cell, ("", -1))[1]:
            best[cell] = bare(row["policy"]), met
    lines = ["| preset | load 0.6: no clones | best other policy | load 0.95: no clones | best other policy |", "|---|---|---|---|---|"]
    for preset in ("G", "Gn", "Gr", "G1", "GJ"):
        parts = [preset]
        for load in ("0.6", "0.95"):
            name, met = best[preset, load]
            parts += [f"{base[preset, load]:.1f}", f"`{name}` {met:.1f}"]
        lines.append("| " + " | ".join(parts) + " |")
    return lines


ABSENT = {
    "max_clones=0": "clones (`max_clones=0`)",
    "weigh=off": "value density (`weigh=off`)",
    "reserve=off,timely=off": "headroom and the feasible set (`reserve=off,timely=off`)",
    "order=fifo": "its order of first attempts (`order=fifo`)",
    "pool=off": "judging unknown jobs by others (`pool=off`)",
    "hedge=never": "clones of silent attempts (`hedge=never`)",
    "clone_price=0": "the price of a clone (`clone_price=0`)",
}


def table_ablation():
    """shed-prime without one idea each, on the published seeds."""
    changed = rows("ablation")
    cells = list(dict.fromkeys((row["preset"], row["load"]) for row in changed if row["policy"] == "shed-prime{weigh=off}"))
    met = {(row["preset"], row["load"], row["policy"]): row for row in changed}
    for row in rows("league-presets") + rows("no-clones"):
        if row["k"] == FACTOR:
            met[row["preset"], row["load"], row["policy"]] = row
    names = {"shed-prime": "`shed-prime`"}
    names |= {f"shed-prime{{{change}}}": f"without {words}" for change, words in ABSENT.items()}
    names |= {name: f"`{name}` instead" for name in ("s-resume-event", "shed-plus", NO_CLONES[0])}
    lines = ["| deadlines met % | " + " | ".join(" ".join(cell) for cell in cells) + " |", "|---" * (len(cells) + 1) + "|"]
    for policy, words in names.items():
        found = (met[(*cell, policy)] for cell in cells)
        lines.append(f"| {words} | " + " | ".join(f"{row['met_percent']} ± {row['met_half95']}" for row in found) + " |")
    return lines


def table_steps():
    """From no clones to shed-prime in G at load 0.95, one step after another."""
    met = {(row["preset"], row["policy"]): row for row in rows("ablation") if row["load"] == "0.95"}
    for row in rows("league-presets") + rows("no-clones"):
        if row["k"] == FACTOR and row["load"] == "0.95":
            met[row["preset"], row["policy"]] = row
    steps = [
        ("`hadoop-ns`: least slack, one attempt per task", ("G", NO_CLONES[0])),
        ("restarts of lone attempts that will miss (`max_clones=0,weigh=off` without preemption, Gn)", ("Gn", "shed-prime{max_clones=0,weigh=off}")),
        ("preemption (`max_clones=0,weigh=off`)", ("G", "shed-prime{max_clones=0,weigh=off}")),
        ("value density, feasible set and headroom (`max_clones=0`)", ("G", "shed-prime{max_clones=0}")),
        ("clones: `shed-prime`", ("G", "shed-prime")),
    ]
    lines = ["| added | deadlines met % | gain in points |", "|---|---|---|"]
    before = None
    for words, key in steps:
        value = float(met[key]["met_percent"])
        gain = "" if before is None else f"{value - before:.1f}"
        lines.append(f"| {words} | {value:.1f} ± {met[key]['met_half95']} | {gain} |")
        before = value
    return lines


def table_now():
    """The current default over today's rivals, without preemption, in points."""
    met = {(row["preset"], row["load"], row["policy"]): row for row in rows("excerpts")}
    # Paired by seed.
    rivals = {NO_CLONES[0]: ("points_to_hadoop_ns", "no_clones_half95"), "shed-plus": ("points_to_shed_plus", "points_half95"), "s-resume-event": ("points_to_s_resume_event", "rival_half95")}
    loads = sorted({load for _, load, _ in met}, key=float)
    lines = ["| preset | load | `shed-prime` | clones per task | " + " | ".join(f"ahead of `{name}`" for name in rivals) + " |", "|---" * 7 + "|"]
    for preset in dict.fromkeys(preset for preset, _, _ in met):
        for load in loads:
            own = met[preset, load, "shed-prime"]
            points = " | ".join(f"{own[mean]} ± {own[half]}".replace("-", "−") for mean, half in rivals.values())
            lines.append(f"| {preset} | {load} | {own['met_percent']} ± {own['met_half95']} | {own['clones_per_task']} | {points} |")
    return lines


def table_half():
    """G on the half of the trace that the design did not use."""
    met = {(row["policy"], row["load"]): row for row in rows("second-half")}
    loads = sorted({load for _, load in met}, key=float)
    lines = ["| policy | " + " | ".join(f"load {load}" for load in loads) + " |", "|---" * (len(loads) + 1) + "|"]
    for policy in ("shed-prime", "shed-plus", NO_CLONES[0]):
        found = (met[policy, load] for load in loads)
        lines.append(f"| `{policy}` | " + " | ".join(f"{row['met_percent']} ± {row['met_half95']}" for row in found) + " |")
    return lines


TABLES = {"now": table_now, "half": table_half, "steps": table_steps, "ablation": table_ablation, "policies": table_policies, "cells": table_cells, "kinds": table_kinds, "ahead": table_ahead}
FIGURES = {"deadlines-met": small_multiples, "policies": heat_map, "price": price, "reliability": reliability}


def filled(page):
    """The text of a page with its tables renewed."""
    block = lambda match: "\n".join([f"<!-- figures.py: {match[1]} -->", "", *TABLES[match[1]](), "", "<!-- end -->"])
    return re.sub(r"<!-- figures\.py: (\w+) -->.*?<!-- end -->", block, page.read_text(), flags=re.DOTALL)


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit("usage: figures.py [--check]")
    texts = {HERE / "pictures" / f"{name}.svg": draw() for name, draw in FIGURES.items()}
    texts |= {page: filled(page) for page in PAGES}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if arguments:
            print(f"{path} is not what docs/research/data gives: run docs/research/figures.py", file=sys.stderr)
        else:
            path.write_text(texts[path])
            print(f"wrote {path}")
    if arguments and stale:
        sys.exit(1)


main(sys.argv[1:])
