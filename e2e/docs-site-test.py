#!/usr/bin/env python3
"""Tests the site's preprocessor (.ci/docs-files) on a made-up book, and the check of its links (.ci/docs-links --site) on a made-up site."""

import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def preprocessed(path, content):
    """The pages, by path, of a book with one page."""
    chapter = {"name": "A", "content": content, "number": None, "sub_items": [], "path": path, "source_path": path, "parent_names": []}
    done = subprocess.run([ROOT / ".ci/docs-files"], input=json.dumps([{}, {"items": [{"Chapter": chapter}]}]),
                          check=True, capture_output=True, text=True)
    found, items = {}, json.loads(done.stdout)["items"]
    while items:
        one = items.pop()["Chapter"]
        found[one["path"]] = one["content"]
        items += one["sub_items"]
    return found


class Files(unittest.TestCase):
    def test_files_outside_docs_become_pages(self):
        pages = preprocessed("how-to/a.md", "[s](../../SUPPORT.md#versions) [m](../../manifests/examples/minimal.yaml) [e](../../manifests/examples)")
        self.assertEqual(pages["how-to/a.md"], "[s](../repository/SUPPORT.md#versions) "
                         "[m](../repository/manifests/examples/minimal.yaml.md) [e](../repository/manifests/examples.md)")
        self.assertIn("kind: DeadlineJob", pages["repository/manifests/examples/minimal.yaml.md"])
        self.assertIn("[observe.yaml](examples/observe.yaml.md)", pages["repository/manifests/examples.md"])
        self.assertIn("repository/manifests/examples/observe.yaml.md", pages)
        # A page of docs/ that such a file links to is the site's own.
        self.assertIn("](../reference/", pages["repository/SUPPORT.md"])

    def test_links_of_docs_and_the_network_stay(self):
        text = "[a](b.md) [b](#c) [c](https://example.com/x.md) `[d](../../SUPPORT.md)`\n```\n[e](../../SUPPORT.md)\n```\n"
        self.assertEqual(preprocessed("how-to/a.md", text)["how-to/a.md"], text)

    def test_what_is_for_tests_is_left_out(self):
        text = "```sh not-run a reason\nls\n```\n<!-- values name=a -->\n<!-- sh cluster\nkubectl get pods\n-->\nEnd\n"
        self.assertEqual(preprocessed("a.md", text)["a.md"], "```sh\nls\n```\nEnd\n")


class Site(unittest.TestCase):
    def check(self, **pages):
        with tempfile.TemporaryDirectory(prefix="shed-site.") as folder:
            for name, content in pages.items():
                pathlib.Path(folder, f"{name}.html").write_text(content)
            done = subprocess.run([ROOT / ".ci/docs-links", "--site", folder], capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_links_and_anchors_exist(self):
        self.assertEqual(self.check(a='<a href="b.html#x">b</a><img src="https://example.com/a.svg">', b='<h2 id="x">X</h2>'), (0, ""))

    def test_dead_links_and_anchors_are_named(self):
        code, errors = self.check(a='<a href="c.html">c</a>\n<a href="b.html#y">b</a><img src="d.svg"><a href="../../etc">e</a>', b="")
        self.assertEqual(code, 1)
        for words in ("a.html:1: c.html is not on the site", "a.html:2: b.html#y: no such anchor", "d.svg is not", "../../etc is not"):
            self.assertIn(words, errors)


if __name__ == "__main__":
    unittest.main()
