#!/usr/bin/env python3
"""Draws the README's picture: deadlines met over load on windows of the Google trace, from the league's data.

  e2e/readme-picture.py            writes docs/deadlines-met.svg
  e2e/readme-picture.py --check    fails if it differs, and changes nothing
"""

import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = [ROOT / "docs/research/data/league-presets.csv", ROOT / "docs/research/data/no-clones.csv"]
PICTURE = ROOT / "docs/deadlines-met.svg"
PRESET, K = "G", "1.5"
# Policy, words, color, and the pixels by which its label is moved down.
LINES = [
    ("shed-prime", "shed-prime (default)", "#0072b2", 0),
    ("hadoop-ns", "no clones", "#8250df", -18),
    ("s-resume-event", "s-resume-event", "#d55e00", 2),
    ("shed-plus", "Shed+", "#009e73", 22),
]
WIDTH, HEIGHT = 860, 360
LEFT, RIGHT, TOP, BOTTOM = 62, 660, 40, 306
LOADS = (0.4, 1.5)


def x_of(load):
    return LEFT + 20 + (RIGHT - LEFT - 40) * (load - LOADS[0]) / (LOADS[1] - LOADS[0])


def y_of(percent):
    return BOTTOM - (BOTTOM - TOP) * percent / 100


def text(x, y, words, anchor="start", color="#24292f", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}">'
            f"{words}</text>")


def line(points, color, width, dash=""):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dash}/>'


def draw(rows):
    """The picture of rows of the league with the same preset and deadline factor."""
    loads = sorted({float(row["load"]) for row in rows})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="15" role="img" aria-label="Deadlines met over load, by policy">',
        # Readable on a dark page too.
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        text(LEFT, 24, "deadlines met", weight="bold"),
    ]
    for percent in range(0, 101, 20):
        parts.append(line([(LEFT, y_of(percent)), (RIGHT, y_of(percent))], "#d8dee4", 1))
        parts.append(text(LEFT - 8, y_of(percent) + 5, f"{percent} %", "end"))
    for load in loads:
        parts.append(text(x_of(load), BOTTOM + 22, f"{load:g}", "middle"))
    parts.append(text((LEFT + RIGHT) / 2, HEIGHT - 10, "load: time of first attempts / time of all slots", "middle"))
    bound = [(x_of(float(row["load"])), y_of(float(row["bound_percent"]))) for row in rows if row["policy"] == LINES[0][0]]
    parts.append(line(bound, "#57606a", 2, "6 4"))
    parts.append(text(RIGHT + 8, bound[-1][1] + 1, "bound for any policy", color="#57606a"))
    for policy, words, color, shift in LINES:
        own = [row for row in rows if row["policy"] == policy]
        points = [(x_of(float(row["load"])), y_of(float(row["met_percent"]))) for row in own]
        parts.append(line(points, color, 3))
        for row, (x, y) in zip(own, points):
            half = y_of(0) - y_of(float(row["met_half95"]))
            parts.append(line([(x, y - half), (x, y + half)], color, 1.5))
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')
        parts.append(text(RIGHT + 8, points[-1][1] + 5 + shift, words, color=color, weight="bold"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    rows = []
    for path in DATA:
        with path.open(newline="") as file:
            rows += [row for row in csv.DictReader(file) if row["preset"] == PRESET and row["k"] == K]
    rows.sort(key=lambda row: float(row["load"]))
    picture = draw(rows)
    if not arguments:
        PICTURE.write_text(picture)
    elif PICTURE.read_text() != picture:
        print(f"{PICTURE.relative_to(ROOT)} differs from docs/research/data: run e2e/readme-picture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
