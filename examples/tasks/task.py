"""Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt."""
# Without shed it does the same work from the start.
import json, os, pathlib, time

UNITS = 40
progress_file = os.environ.get("SHED_PROGRESS_FILE")
checkpoint = pathlib.Path(os.environ.get("SHED_RESUME_FILE", os.devnull) + ".checkpoint")
first = int(checkpoint.read_text()) if checkpoint.exists() else 0
print("begins at unit", first, flush=True)
for unit in range(first, UNITS):
    time.sleep(float(os.environ.get("STEP", "1")))  # the work on one unit
    if progress_file:
        with open(progress_file + ".new", "w") as file:
            json.dump({"progress": f"{unit + 1}/{UNITS}", "checkpoint": str(unit + 1)}, file)
        os.replace(progress_file + ".new", progress_file)
