#!/usr/bin/env python3
"""Programs of the how-to pages, without a cluster: the Python of tasks, with and without shed's files and grants; the commands
that read a stored night (e2e/late-night.json), with a kubectl that prints it; and `kubectl shed` with an apiserver that serves it.

SHED_PROGRAMS is the folder of kubectl-shed, target/debug by default. Without the program its tests are skipped.
"""

import http.server
import importlib.util
import json
import os
import pathlib
import re
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "manifests/examples/nightly-cronjob.yaml"
NIGHT = ROOT / "e2e/late-night.json"
PLUGIN = pathlib.Path(os.environ.get("SHED_PROGRAMS", ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug")) / "kubectl-shed"
ROWS = 1000
TOTAL = sum(range(ROWS))


def page(name):
    """The names that the Python blocks of a how-to page define."""
    text = (ROOT / "docs/how-to" / name).read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, name, "exec"), names)
    return names


class Environment:
    """Replaces shed's variables for a while."""

    def __init__(self, **variables):
        self.variables = variables

    def __enter__(self):
        self.before = dict(os.environ)
        for name in [name for name in os.environ if name.startswith("SHED_")]:
            del os.environ[name]
        os.environ.update(self.variables)

    def __exit__(self, *_):
        os.environ.clear()
        os.environ.update(self.before)


class Server(socketserver.ThreadingTCPServer):
    """Grants commits, and keeps objects as a bucket or an apiserver does. The first request for a grant breaks off."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.objects = 0, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.server.requests += 1
        body = json.dumps({"job": "uid", "task": 3, "segment": 0, "token": 17}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:5] if self.server.requests == 1 else body)

    def do_GET(self):
        found = self.server.objects.get(self.path.partition("?")[0])
        body = (found or '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}').encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        exists = self.headers["If-None-Match"] == "*" and self.path in self.server.objects
        if not exists:
            self.server.objects[self.path] = body.decode()
        answer = b"<Error><Code>PreconditionFailed</Code></Error>" if exists else b""
        self.send_response(412 if exists else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_without_shed_nothing_is_reported_read_or_asked(self):
        with Environment():
            self.assertIsNone(page("report-progress.md")["report"](0.5, "row 5"))
            self.assertEqual(page("resume.md")["resume_point"](), {"progress": 0.0, "checkpoint": None})
            self.assertEqual(page("publish-once.md")["commit_token"](), 0)

    def test_a_successor_reads_what_was_reported(self):
        reported, resumed = self.folder / "progress", self.folder / "resume"
        with Environment(SHED_PROGRESS_FILE=str(reported), SHED_RESUME_FILE=str(resumed)):
            resume_point = page("resume.md")["resume_point"]
            self.assertIsNone(resume_point()["checkpoint"])
            resumed.write_text('{"progress": 0.25}')
            self.assertEqual(resume_point(), {"progress": 0.25, "checkpoint": None})
            page("report-progress.md")["report"](0.5, "row 5")
            self.assertEqual(resume_point(), {"progress": 0.5, "checkpoint": "row 5"})
        self.assertEqual(list(self.folder.glob("*.new")), [])

    def test_a_request_that_breaks_off_is_sent_again(self):
        with Server() as server, Environment(SHED_COMMIT_URL=server.url):
            self.assertEqual(page("publish-once.md")["commit_token"](), 17)
            self.assertEqual(server.requests, 2)

    def test_the_first_marker_stays(self):
        class Refused(Exception):
            response = {"Error": {"Code": "PreconditionFailed"}}

        class Bucket(dict):
            class exceptions:
                ClientError = Refused

            def put_object(self, Bucket, Key, Body, IfNoneMatch=None):
                if IfNoneMatch == "*" and Key in self:
                    raise Refused
                self[Key] = Body

        publish, bucket = page("publish-once.md")["publish"], Bucket()
        publish(bucket, "b", "night/3", 17, b"first")
        publish(bucket, "b", "night/3", 18, b"second")
        self.assertEqual(json.loads(bucket["night/3/done.json"]), {"result": "night/3/17/result.json"})
        self.assertEqual(len(bucket), 3)


class Nightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        objects = list(yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")))
        self.program = self.folder / "task.py"
        self.program.write_text(objects[0]["data"]["task.py"])
        self.template = objects[1]["spec"]["jobTemplate"]

    def run_task(self, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SHED_")}
        environment.update(variables, STEP="0", RUN="night", JOB_COMPLETION_INDEX="3")
        done = subprocess.run([sys.executable, self.program], env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_without_shed_the_task_does_all_its_work(self):
        self.assertEqual(self.run_task(), [
            "begins at row 0",
            f'writes night/3/0/result.json {{"total": {TOTAL}}}',
            'writes night/3/done.json {"result": "night/3/0/result.json"}',
        ])

    def test_with_shed_the_task_resumes_reports_and_asks(self):
        progress, resume = self.folder / "progress", self.folder / "resume"
        point = json.dumps({"row": 500, "total": sum(range(500))})
        resume.write_text(json.dumps({"progress": 0.5, "checkpoint": point}))
        with Server() as server:
            out = self.run_task(SHED_PROGRESS_FILE=str(progress), SHED_RESUME_FILE=str(resume), SHED_COMMIT_URL=server.url)
            self.assertEqual(server.requests, 2)
        self.assertEqual(out[0], "begins at row 500")
        self.assertEqual(out[1], f'writes night/3/17/result.json {{"total": {TOTAL}}}')
        report = json.loads(progress.read_text())
        self.assertEqual(report["progress"], f"{ROWS}/{ROWS}")
        self.assertEqual(json.loads(report["checkpoint"]), {"row": ROWS, "total": TOTAL})
        self.assertLessEqual(len(report["checkpoint"]), 256)

    @unittest.skipUnless(importlib.util.find_spec("boto3"), "this machine has no boto3")
    def test_a_bucket_keeps_the_first_marker(self):
        with Server() as server:
            cloud = {"BUCKET": "reports", "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "a",
                     "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true",
                     "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
            self.run_task(**cloud)
            again = self.run_task(**cloud, SHED_COMMIT_URL=server.url)
            self.assertEqual(again[-1], "an earlier attempt has published")
            self.assertEqual(json.loads(server.objects["/reports/night/3/done.json"]), {"result": "night/3/0/result.json"})
            self.assertEqual(len(server.objects), 3)

    def test_the_page_of_the_cron_job_shows_the_same_lines(self):
        text = (ROOT / "docs/how-to/cron-job-with-time-zone.md").read_text(encoding="utf-8")
        shown = next(yaml.safe_load(block) for block in re.findall(r"```yaml cluster\n(.*?)```", text, re.DOTALL))
        template = shown["spec"]["jobTemplate"]
        self.assertEqual(template["spec"]["managedBy"], self.template["spec"]["managedBy"])
        self.assertLessEqual(template["metadata"]["annotations"].items(), self.template["metadata"]["annotations"].items())


KUBECTL = f"""#!/bin/sh
case "$*" in
"get deadlinejobs "*) jq '{{items: [.companion]}}' {NIGHT} ;;
"get deadlinejob "*) jq .companion {NIGHT} ;;
"get job "*) jq .job {NIGHT} ;;
esac
"""


def blocks(name, *languages):
    """(language, content) of the blocks of a how-to page, with the values of its placeholders."""
    text = (ROOT / "docs/how-to" / name).read_text(encoding="utf-8")
    values = dict(word.split("=") for line in re.findall(r"<!-- values (.*) -->", text) for word in line.split())
    found = re.findall(r"```(\w+)[^\n]*\n(.*?)```", text, re.DOTALL)
    return [re.sub(r"<(\w+)>", lambda word: values.get(word[1], word[0]), content)
            for language, content in found if language in languages]


class StoredNight(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "kubectl").write_text(KUBECTL)
        (self.folder / "kubectl").chmod(0o755)
        self.night = json.loads(NIGHT.read_text())

    def shell(self, commands):
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}")
        return subprocess.run(["bash", "-ec", commands], env=environment, capture_output=True, text=True, check=True).stdout

    def test_the_record_names_attempts_decisions_and_the_slow_node(self):
        record, nodes = [block for block in blocks("why-late.md", "sh") if "jq" in block]
        find = next(block for block in blocks("why-late.md", "sh") if "-o name" in block)
        labels = self.night["companion"]["metadata"]["labels"]
        selector = re.search(r"deadlinejobs -l (\S+)=(\S+)", find)
        self.assertEqual(labels[selector[1]], selector[2])
        lines = self.shell(record).splitlines()
        self.assertIn("2026-01-30T03:12:30Z\ttask 17\tRefused\tCapacity", lines)
        self.assertIn("2026-01-30T04:24:10Z\ttask 17 attempt 1\tWon\tnode-1", lines)
        self.assertEqual(self.shell(nodes).split(), ["1", "node-3"])

    def test_a_job_is_made_ready_for_the_built_in_controller(self):
        block = next(block for block in blocks("going-back.md", "sh") if ".spec.selector" in block)
        job = json.loads(self.shell(block.split("> /tmp/job.json")[0]))
        before = self.night["job"]
        self.assertEqual(job["metadata"], {"name": before["metadata"]["name"], "namespace": "team", "annotations": {},
                                           "labels": {"shed.dev/class": "nightly-report"}})
        self.assertEqual(job["spec"]["template"]["metadata"]["labels"], {})
        self.assertEqual(job["spec"]["template"]["spec"], before["spec"]["template"]["spec"])
        self.assertEqual(before["spec"].keys() - job["spec"].keys(), {"managedBy", "selector"})
        self.assertNotIn("status", job)

    @unittest.skipUnless(PLUGIN.exists(), f"{PLUGIN} is not built")
    def test_the_page_shows_what_the_plugin_prints(self):
        commands = [block.split() for block in blocks("why-late.md", "sh") if block.startswith("kubectl shed ")]
        shown = blocks("why-late.md", "text")
        self.assertEqual(len(commands), len(shown))
        with Server() as server:
            for one in self.night.values():
                group, kind = one["apiVersion"], one["kind"].lower() + "s"
                server.objects[f"/apis/{group}/namespaces/team/{kind}/{one['metadata']['name']}"] = json.dumps(one)
            server.objects["/api/v1/namespaces/team/pods"] = json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": []})
            config = self.folder / "config"
            config.write_text(json.dumps({
                "clusters": [{"name": "c", "cluster": {"server": server.url}}], "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
                "current-context": "c"}))
            for command, text in zip(commands, shown):
                done = subprocess.run([PLUGIN, *command[2:]], env=dict(os.environ, KUBECONFIG=str(config)),
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(re.sub(r", \w+ ago", ", … ago", done.stdout), text, done.stderr)

    @unittest.skipUnless(PLUGIN.exists(), f"{PLUGIN} is not built")
    def test_every_example_is_valid(self):
        for file in sorted((ROOT / "manifests/examples").glob("*.yaml")):
            done = subprocess.run([PLUGIN, "check", "-f", file], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, "warning: " in done.stdout), (0, False), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
