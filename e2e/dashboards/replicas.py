"""The operator's replicas: does shed itself work?

Python has a module `operator`, so this one has another name than its dashboard.
"""

from grafana import GREEN, ORANGE, RED, Dashboard, datasource_variable, label_variable, steps

# The namespace of the operator's pods. Without such a label, "All" matches.
CHOSEN = '{namespace=~"$namespace"}'
REPLICA = "{{instance}} {{pod}}"


def rate(metric, by="", matchers=CHOSEN):
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({metric}{matchers}[$__rate_interval]))"


def quantiles(histogram, name, of=(0.5, 0.99)):
    """(expression, legend) of each quantile of a histogram of growing buckets."""
    buckets = rate(f"{histogram}_bucket", "le")
    return [(f"histogram_quantile({quantile}, {buckets})", f"{name} p{round(100 * quantile)}") for quantile in of]


def of_process(expression):
    """Only of shed's processes, because every program exports these metrics."""
    return f"({expression}) and on (job, instance) shed_leader{CHOSEN}"


def leadership(board):
    board.row("Leader")
    board.stat(
        "Leaders",
        "short",
        "Replicas that lead now. With 0 shed starts and stops no attempts. 2 may show for one scrape at a failover.",
        f"sum(shed_leader{CHOSEN}) or vector(0)",
        thresholds=steps(RED, (1, GREEN), (2, ORANGE)),
        decimals=0,
    )
    board.stat("Replicas", "short", "Replicas that Prometheus scrapes.", f"count(shed_leader{CHOSEN}) or vector(0)", width=2, decimals=0)
    board.stat(
        "Version",
        "short",
        "Version of the replicas. Two versions show during a roll-out.",
        f"count by (version) (shed_build_info{CHOSEN})",
        width=2,
        legend="{{version}}",
    )
    board.stat(
        "Lease losses",
        "short",
        "Times that a leader lost the Lease in the time range. A roll-out loses none, because the leader releases the Lease.",
        f"sum(increase(shed_lease_lost_total{CHOSEN}[$__range])) or vector(0)",
        thresholds=steps(GREEN, (0.5, ORANGE)),
        decimals=0,
    )
    board.stat(
        "Jobs in quarantine",
        "short",
        "Jobs whose reconciles are paused after a panic, a timeout or a stuck step. docs/reference/operator.md#jobs-in-quarantine shows what to do.",
        f"max(shed_jobs_quarantined{CHOSEN}) or vector(0)",
        thresholds=steps(GREEN, (1, RED)),
        decimals=0,
    )
    board.stat(
        "Jobs not run",
        "short",
        "Jobs that this version cannot decode, and batch/v1 Jobs that it started and no longer adopts.",
        f"max(shed_jobs_undecodable{CHOSEN} + shed_jobs_not_adopted{CHOSEN}) or vector(0)",
        thresholds=steps(GREEN, (1, ORANGE)),
        decimals=0,
    )
    board.stat(
        "Clock uncertainty",
        "s",
        "Largest possible difference between the leader's time and the apiserver's. Above 2 s shed stops no job at its "
        "deadline.",
        f"max(shed_clock_uncertainty_seconds{CHOSEN} and on (job, instance) shed_leader{CHOSEN} == 1)",
        thresholds=steps(GREEN, (2, RED)),
    )


def election(board):
    board.states(
        "Leader over time",
        "short",
        "Replica that leads. A gap between two leaders is a failover, in which shed starts and stops nothing.",
        f"shed_leader{CHOSEN}",
        REPLICA,
        [(0, "waits", "text"), (1, "leads", GREEN)],
    )
    board.lines(
        "Election",
        "cps",
        "Terms begun, Leases lost and failed requests for the Lease, per second. Refused writes are those that the write gate "
        "stopped because the replica no longer led.",
        (rate("shed_lease_terms_total"), "terms"),
        (rate("shed_lease_lost_total"), "lost"),
        (rate("shed_lease_errors_total"), "failed requests"),
        (rate("shed_write_gate_refusals_total"), "refused writes"),
        min=0,
    )
    board.lines(
        "Clock",
        "s",
        "How far the apiserver's clock is ahead of each replica's, and how exactly the replica knows it.",
        (f"shed_clock_offset_seconds{CHOSEN}", "offset " + REPLICA),
        (f"shed_clock_uncertainty_seconds{CHOSEN} < Inf", "uncertainty " + REPLICA),
    )


def planner(board):
    board.row("Planner")
    buckets = rate("shed_planning_pass_duration_seconds_bucket", "le")
    board.lines(
        "Latency of planning",
        "s",
        "Duration of planning passes, and of the decision in them, by quantile. The alert ShedReactsLate fires above 1 s.",
        *quantiles("shed_planning_pass_duration_seconds", "pass"),
        *quantiles("shed_planning_decision_duration_seconds", "decision"),
        thresholds=steps("transparent", (1, RED)),
        min=0,
    )
    board.heat("Passes by duration", "s", "Planning passes per second, by duration of the whole pass.", buckets)
    board.lines(
        "Planning passes",
        "cps",
        "Planning passes per second. shed plans when something has changed, so an idle cluster has few.",
        (rate("shed_planning_pass_duration_seconds_count"), "passes"),
        min=0,
    )


def faults(board):
    board.lines(
        "Planning faults",
        "cps",
        "Passes that panicked, and jobs that a pass left out, per second. Such jobs get no clones in that pass.",
        (rate("shed_planning_panics_total"), "panics"),
        (rate("shed_job_snapshots_rejected_total"), "inconsistent snapshots"),
        (rate("shed_jobs_over_planning_budget_total"), "over the work budget"),
        (rate("shed_plan_check_refusals_total"), "refused by the check"),
        min=0,
    )
    board.lines(
        "Reconciles that failed",
        "cps",
        "Reconciles that failed and are tried again, by step, and those that quarantine their job, by reason.",
        (rate("shed_reconcile_errors_total", "reason") + " > 0", "{{reason}}"),
        (rate("shed_reconcile_crashes_total", "reason"), "quarantine: {{reason}}"),
        min=0,
    )
    board.lines(
        "Reconciles",
        "short",
        "Reconciles that run now, and jobs that wait for one of them.",
        (f"max(shed_reconciles_running{CHOSEN})", "running"),
        (f"max(shed_reconciles_waiting{CHOSEN})", "waiting"),
        min=0,
    )
    board.lines(
        "Age of watches",
        "s",
        "Time since the apiserver last answered the leader's watch, by resource. A healthy watch is answered every minute.",
        (f"max by (resource) (shed_watch_age_seconds{CHOSEN})", "{{resource}}"),
        min=0,
    )
    board.lines(
        "Jobs that shed does not run",
        "short",
        "Jobs in quarantine, jobs that this version cannot decode, started batch/v1 Jobs that it no longer adopts, and jobs "
        "that cannot start or continue.",
        (f"max(shed_jobs_quarantined{CHOSEN})", "quarantine"),
        (f"max(shed_jobs_undecodable{CHOSEN})", "undecodable"),
        (f"max(shed_jobs_not_adopted{CHOSEN})", "not adopted"),
        (f"sum(max by (job_namespace, reason) (shed_jobs_blocked{CHOSEN})) or vector(0)", "blocked"),
        min=0,
        decimals=0,
    )


def polls(board):
    board.row("Progress polls and commit grants")
    board.lines(
        "Polls",
        "cps",
        "Progress polls per second, and those without a valid response.",
        (rate("shed_progress_polls_total"), "polls"),
        (rate("shed_progress_poll_failures_total"), "failed"),
        min=0,
    )
    board.lines(
        "Delay of polls",
        "s",
        "Longest delay of a due poll that waits for the poll budget (progressPollsPerSecond). The alert ShedReactsLate "
        "fires above 10 s.",
        (f"max(shed_progress_poll_delay_seconds{CHOSEN})", "delay"),
        thresholds=steps("transparent", (10, RED)),
        min=0,
    )
    board.lines(
        "Duration of polls",
        "s",
        "Duration of progress polls, those without a response included, by quantile. A poll is given up after 1 s.",
        *quantiles("shed_progress_poll_duration_seconds", "poll"),
        min=0,
    )
    board.lines(
        "Reports refused",
        "cps",
        "Invalid progress reports per second, by reason. docs/reference/tasks.md#progress-reports lists the rules.",
        (rate("shed_progress_reports_refused_total", "reason"), "{{reason}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Commit grants",
        "cps",
        "Attempts that received a commit grant per second, and requests to fenced attempts without a response.",
        (rate("shed_commit_grants_total"), "grants"),
        (rate("shed_fence_requests_unanswered_total"), "no response"),
        min=0,
    )


def pods(board):
    board.lines(
        "Pods refused",
        "cps",
        "Attempt pods that the apiserver refused to create per second, by reason.",
        (rate("shed_pods_refused_total", "reason"), "{{reason}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Pods disowned",
        "cps",
        "Pods that carry a job's label but are not its attempts, per second, by reason. They never decide a job. Many of them "
        "mean that a program copies shed's labels.",
        (rate("shed_pods_disowned_total", "reason"), "{{reason}}"),
        stacked=True,
        min=0,
    )


def writes(board):
    board.row("Writes")
    board.lines(
        "Writes to the apiserver",
        "wps",
        "Writes per second, by operation.",
        (rate("shed_apiserver_writes_total", "operation"), "{{operation}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Duration of stops",
        "s",
        "Time from the observation that attempts must stop to the apiserver's answers to their deletes, by quantile.",
        *quantiles("shed_attempt_stop_duration_seconds", "stop"),
        min=0,
    )
    board.lines(
        "Bytes of ledgers",
        "Bps",
        "Bytes of job status that shed wrote per second.",
        (rate("shed_ledger_write_bytes_total"), "bytes"),
        min=0,
    )
    board.lines(
        "Writes that waited or were too large",
        "wps",
        "Status writes per second that waited for the byte-rate limit, and those of job objects above 1 MiB.",
        (rate("shed_ledger_writes_deferred_total"), "waited"),
        (rate("shed_job_objects_over_limit_total"), "above 1 MiB"),
        min=0,
    )
    board.lines(
        "Size of job objects",
        "bytes",
        "Size of job objects when shed writes their status, by quantile. etcd refuses objects above 1.5 MiB by default.",
        *quantiles("shed_job_object_size_bytes", "size"),
        thresholds=steps("transparent", (1048576, RED)),
        min=0,
    )


def stored_state(board):
    board.lines(
        "Stored state: size",
        "bytes",
        "Size of the ConfigMap that keeps for the next leader what shed learned from past jobs.",
        (f"max(shed_state_bytes{CHOSEN})", "size"),
        min=0,
    )
    board.lines(
        "Stored state: entries restored",
        "short",
        "Classes, tenants and jobs in the stored state that the last term of each replica began with.",
        (f"shed_state_restored_entries{CHOSEN}", REPLICA),
        min=0,
    )
    board.lines(
        "Stored state: writes",
        "wps",
        "Writes of the stored state per second, and those that failed. Entries are left out because of the size limit. An unusable "
        "state is broken, newer or not readable.",
        (rate("shed_state_writes_total"), "writes"),
        (rate("shed_state_write_errors_total"), "failed"),
        (rate("shed_state_entries_dropped_total"), "entries left out"),
        (rate("shed_state_unusable_total", "reason"), "unusable: {{reason}}"),
        min=0,
    )


def losses(board):
    board.lines(
        "Lost events and recordings",
        "cps",
        "Events that shed did not write per second, by reason. Planning passes and attempts that are missing in the recording.",
        (rate("shed_events_dropped_total", "reason"), "events: {{reason}}"),
        (rate("shed_recording_entries_lost_total"), "recording"),
        min=0,
    )


def processes(board):
    board.row("Processes")
    board.lines(
        "CPU",
        "short",
        "CPU time per second of each replica, in cores.",
        (of_process("rate(process_cpu_seconds_total[$__rate_interval])"), REPLICA),
        min=0,
    )
    board.lines(
        "Memory",
        "bytes",
        "Resident memory of each replica. The chart's default limit is 512 MiB.",
        (of_process("process_resident_memory_bytes"), REPLICA),
        min=0,
    )
    board.lines(
        "Virtual memory",
        "bytes",
        "Virtual memory of each replica. Only its growth without end is a sign of a fault.",
        (of_process("process_virtual_memory_bytes"), REPLICA),
        min=0,
    )
    board.lines(
        "Open files",
        "percentunit",
        "Open file descriptors of each replica, as a share of its limit. Connections count too.",
        (of_process("process_open_fds / process_max_fds"), REPLICA),
        min=0,
    )
    board.lines("Threads", "short", "Threads of each replica.", (of_process("process_threads"), REPLICA), min=0)
    board.lines(
        "Uptime",
        "s",
        "Time since each replica started. A drop to 0 is a restart.",
        (of_process("time() - process_start_time_seconds"), REPLICA),
        min=0,
    )


def dashboard():
    board = Dashboard(
        "shed-operator",
        "shed / Operator",
        "Does shed itself work? docs/how-to/dashboards.md explains the panels.",
        [datasource_variable(), label_variable("namespace", "Namespace of shed", "shed_leader", "namespace", True)],
        span="now-6h",
    )
    leadership(board)
    election(board)
    planner(board)
    faults(board)
    polls(board)
    pods(board)
    writes(board)
    stored_state(board)
    losses(board)
    processes(board)
    return board
