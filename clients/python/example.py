"""Creates a DeadlineJob, waits for its end, and prints its PoCD on the way.

  python example.py NAME NAMESPACE IMAGE
"""

import sys
import time

from kubernetes import client, config

from shed_client import DeadlineJob
from shed_client.models import Deadline, DeadlineJobSpec

RESOURCE = {"group": "shed.dev", "version": "v1alpha1", "plural": "deadlinejobs"}
PATIENCE_SECONDS = 300


def job(name, image):
    """Three short tasks that must be complete in two minutes."""
    container = {"name": "task", "image": image, "command": ["sleep", "3"]}
    return DeadlineJob(
        api_version="shed.dev/v1alpha1",
        kind="DeadlineJob",
        metadata={"name": name},
        spec=DeadlineJobSpec(
            completions=3,
            deadline=Deadline(within="2m"),
            idempotency="Safe",
            template={"spec": {"restartPolicy": "Never", "containers": [container]}},
        ),
    )


def wait(jobs, name, namespace):
    """Returns the condition with which the job ended."""
    reported = None
    for _ in range(PATIENCE_SECONDS):
        found = DeadlineJob.model_validate(
            jobs.get_namespaced_custom_object(**RESOURCE, namespace=namespace, name=name)
        )
        status = found.status
        if status and status.pocd not in (None, reported):
            reported = status.pocd
            print("PoCD", reported, flush=True)
        for condition in (status.conditions if status else None) or []:
            if condition.status == "True" and condition.type in ("Complete", "Failed"):
                return condition
        time.sleep(1)
    sys.exit(f"{name} has not ended after {PATIENCE_SECONDS} s")


def main(name, namespace, image):
    config.load_config()
    jobs = client.CustomObjectsApi()
    body = job(name, image).model_dump(mode="json", by_alias=True, exclude_none=True)
    jobs.create_namespaced_custom_object(**RESOURCE, namespace=namespace, body=body)
    condition = wait(jobs, name, namespace)
    if condition.type == "Failed":
        sys.exit(f"the job failed: {condition.message}")
    print("complete")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
