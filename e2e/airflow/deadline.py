"""The DAG `deadline`: its only task is the first Python block of docs/how-to/airflow.md, as the page has it but for the image.

SHED_PAGE names the page, and SHED_E2E_BUSYBOX the image.
"""

import os
import pathlib
import re

from airflow.sdk import DAG

page = pathlib.Path(os.environ["SHED_PAGE"]).read_text(encoding="utf-8")
code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
code = code.replace("busybox:1.37", os.environ["SHED_E2E_BUSYBOX"])

with DAG("deadline", schedule=None):
    exec(compile(code, os.environ["SHED_PAGE"], "exec"))  # noqa: S102
