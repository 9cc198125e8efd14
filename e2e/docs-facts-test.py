#!/usr/bin/env python3
"""Tests .ci/docs_facts.py: a fact that differs from its home, and a name that no code has, are problems."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / ".ci"))
sys.dont_write_bytecode = True

import docs_facts  # noqa: E402


def marked(name, value):
    return f"a\n<!-- fact: {name} -->{value}<!-- /fact -->\n"


class Facts(unittest.TestCase):
    def test_each_fact_of_a_table_has_a_value(self):
        self.assertRegex(docs_facts.facts()["upstream-specs"], r"^\d+ of \d+$")
        self.assertLess(float(docs_facts.facts()["cpu-ratio-least"]), float(docs_facts.facts()["cpu-ratio-most"]))

    def test_facts_that_the_code_knows_are_right(self):
        words = "no one two three four five six seven eight nine ten eleven twelve".split()
        root, facts = docs_facts.ROOT, docs_facts.facts()
        alerts = (root / "charts/shed/files/alerts.yaml").read_text().count("- alert: ")
        self.assertEqual(facts["alerts"], words[alerts])
        self.assertIn(f'kubeVersion: ">={facts["kubernetes-oldest"]}.0-0"', (root / "charts/shed/Chart.yaml").read_text())
        self.assertIn(f'const defaultVersion = "{facts["kubernetes-default"]}"', (root / "e2e/cluster/manager/minors.go").read_text())

    def test_a_fact_that_differs_is_found_and_filled_in(self):
        text = marked("kubernetes-default", "0.1")
        self.assertEqual([line for line, _ in docs_facts.fact_problems(text)], [2])
        self.assertEqual(list(docs_facts.fact_problems(docs_facts.filled(text))), [])

    def test_a_fact_without_a_home_is_found(self):
        self.assertEqual(len(list(docs_facts.fact_problems(marked("no-such-fact", "1")))), 1)

    def test_a_row_that_is_missing_is_an_error(self):
        with self.assertRaises(ValueError):
            docs_facts.cell("x", "docs/develop/bench-scale.md", "Time and CPU", "2x2", "controller CPU")


class Names(unittest.TestCase):
    def test_reasons_and_label_values_that_the_code_lacks_are_found(self):
        line = "`shed_reconcile_crashes_total{reason}` counts: `panicked`, `timed_out`, `overran`; `NoSuchReason`, `NodeUnreachable`"
        found = [problem for _, problem in docs_facts.name_problems(line)]
        self.assertEqual(sorted(problem.split("`")[1] for problem in found), ["NoSuchReason", "overran"])


if __name__ == "__main__":
    unittest.main()
