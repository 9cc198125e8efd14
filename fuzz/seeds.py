#!/usr/bin/env python3
"""Writes the first inputs of each parser to fuzz/corpus: one of each form that it reads.

The recording is not among them: `shed-sim run --record` wrote it, and its first five lines are kept.
"""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent / "corpus"
REPLY = {"attempt": "uid", "content": "0.25 part-7", "age_ms": 40}
LEDGER = {
    "form": 1, "revision": 7, "done": "0-3,9",
    "tasks": {"since": "2026-01-02T03:04:05.000000Z", "lines": ["4,1;0o0,n0", "5,2,f1;1r61500,n0"], "nodes": ["n1"]},
}
JOB = {
    "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
    "metadata": {"name": "words", "namespace": "team", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {
        "deadline": {"within": "5m"}, "completions": 12, "idempotency": "Safe", "resume": "Checkpoint",
        "progress": {"file": {}}, "expectedTaskDuration": {"p50": "20s", "p90": "60s"},
        "template": {"spec": {"containers": [{"name": "task", "image": "i"}]}},
    },
    "status": {"phase": "Running", "ledger": LEDGER},
}
ROWS = {
    "tasks": "job_id,arrival_s,task_id,duration_s,cpu,memory_mib,deps,deadline_s\nj,0,a,4.5,1,100,,60\nj,0,b,2,1,100,a,60\n",
    "attempts": "job_id,arrival_s,task_id,duration_s,attempt,start_s,outcome\nj,0,0,23.2,1,1.6,FAIL\nj,0,0,21.9,2,26,FINISH\n",
    "stages": "job_id,arrival_s,task_id,duration_s,n_instances\nj,0,9,131.9,7\nk,3,1,58,2\n",
    "pods": "job_id,arrival_s,task_id,duration_s,qos,phase\nj,0,0,125,LS,Succeeded\nk,42,0,12,BE,Failed\n",
    "swim": "job_id,arrival_s,input_bytes,shuffle_bytes,output_bytes,n_map_derived,n_reduce_derived\nj,49,740773,2339561,627471,1,1\n",
    "tpch": "job_id,arrival_s,task_id,duration_s,deps,stage,executors,wave\nq1,,s0.0,4.2,,s0,50,first\nq1,,s1.0,4.3,s0,s1,50,first\n",
    "distributions": "quantity,given,value,count\njob_interval,,0,20\njob_interval,,1,4\n",
}
SWF = "; Version: 2.2\n; UnixStartTime: 0\n1 0 1 60 4 -1 -1 4 90 -1 1 1 1 1 1 1 -1 -1\n2 5 1 30 2 -1 -1 2 60 -1 1 1 1 1 1 1 1 -1\n"
PAST = [{"ended": [100000, 100001], "running": []}, {"ended": [100000, 130000], "running": []}]
STATE = {
    "version": 1,
    "planner": {"as_of": 10000, "experience": {"history": {
        "tenants": {"team": {"jobs": {"jobs": PAST, "updated": 2}, "excess": 0.3}},
        "classes": {"nightly": {"jobs": PAST, "updated": 2, "tenant": "team"}},
        "under_way": {},
    }}},
    "calibration": {"tenants": {}},
}
SEEDS = {
    "progress": ["0.5", "37/100 part-7", '{"progress": 0.25, "checkpoint": "x"}', "# TYPE done counter\ndone 5\ntotal 20\n"],
    "wire": [json.dumps(REPLY), json.dumps({"attempt": "uid", "problem": "NotUtf8"}), "uid     0.5"],
    "annotations": [
        "deadline=06:00 Europe/Zurich\nidempotency=Safe\nspeculation=Enabled",
        "deadline=within: 5m\nprogress=file\nresume=Checkpoint\nclone-budget=0.2",
        "deadline={at: 2026-01-02T03:04:05Z}\non-miss=Fail\nexpected-task-duration={p50: 20s, p90: 60s}",
        "workflow=w-1\nworkflow-deadline=30m\nworkflow-last=true\nprogress={httpGet: {port: 80, path: /p}}",
        "deadline=history: {quantile: 0.9}\nprogress=metric: {port: 9090, name: done, total: all}",
    ],
    "ledger": [json.dumps(JOB)],
    "state": [json.dumps(STATE)],
    "trace": [*("0" + rows for rows in ROWS.values()), "1" + SWF],
}

for target, texts in SEEDS.items():
    folder = ROOT / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"seed-{number}").write_text(text, encoding="utf-8")
