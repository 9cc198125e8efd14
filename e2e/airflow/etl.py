"""The DAG `etl`: the Python block of docs/how-to/workflow-from-airflow.md, with the image and the work of a test.

SHED_PAGE names the page, SHED_E2E_BUSYBOX the image, SHED_WORK a file with the script of the stage `transform`, and
SHED_WITHIN the deadline. Without SHED_MANAGED the built-in controller runs the Jobs.
"""

import os
import pathlib
import re

from kubernetes.client import models as k8s

page = pathlib.Path(os.environ["SHED_PAGE"]).read_text(encoding="utf-8")
code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
exec(compile(code, os.environ["SHED_PAGE"], "exec"))  # noqa: S102

WORK = pathlib.Path(os.environ["SHED_WORK"]).read_text(encoding="utf-8")
for task in dag.tasks:
    task.image = os.environ["SHED_E2E_BUSYBOX"]
    task.image_pull_policy = "IfNotPresent"
    task.cmds = ["sh", "-ec"]
    task.arguments = [WORK if task.task_id == "transform" else "sleep 1"]
    task.container_resources = k8s.V1ResourceRequirements(requests={"cpu": "100m", "memory": "16Mi"})
    task.annotations["shed.dev/workflow-deadline"] = os.environ["SHED_WITHIN"]
    if "SHED_MANAGED" not in os.environ:
        task.full_job_spec.spec.managed_by = None
