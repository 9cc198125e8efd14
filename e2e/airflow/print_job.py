"""Parses the DAGs of a folder as Airflow does, and writes to a file the Job that the task `report`
of the DAG `deadline` creates."""

import importlib.util
import pathlib
import sys

import yaml
from kubernetes.client import ApiClient

file = pathlib.Path(sys.argv[1]) / "deadline.py"
spec = importlib.util.spec_from_file_location("deadline", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
operator = module.report
job = operator.build_job_request_obj({})
with open(sys.argv[2], "w", encoding="utf-8") as out:
    yaml.safe_dump(ApiClient().sanitize_for_serialization(job), out)
