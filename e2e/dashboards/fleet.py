"""The fleet: do jobs meet their deadlines, and what does that cost?"""

from grafana import GREEN, ORANGE, RED, Dashboard, datasource_variable, label_variable, steps, text_variable

JOB = "job_namespace, job_name, job_kind"
CHOSEN = '{job_namespace=~"$namespace"}'


def of_jobs(metric):
    """One series per job, although the old leader's may still be there after a failover."""
    return f"max by ({JOB}) ({metric}{CHOSEN})"


POCD = of_jobs("shed_job_pocd_calibrated")
UNFINISHED = of_jobs("shed_job_deadline_timestamp_seconds")
MOST_AT_RISK = f"bottomk(50, {POCD})"
CHOSEN_JOB = "var-namespace=${__data.fields.Namespace}&var-job=${__data.fields.Job}"
JOB_LINK = f"/d/shed-job?{CHOSEN_JOB}&${{datasource:queryparam}}&${{__url_time_range}}"
CAPACITY_SHARE = "max by (resource, unit) (shed_capacity_used) / (max by (resource, unit) (shed_capacity_usable) > 0)"
ALL_NAMESPACES = "Of all namespaces, because the counters have no label for them."


def increase(metric, window, matchers=""):
    return f"sum(increase({metric}{matchers}[{window}]))"


def ended(outcome, window):
    """Ended jobs of the chosen namespaces with this outcome."""
    return increase(f"shed_deadlines_{outcome}_total", window, CHOSEN)


def missed(window):
    return f"{ended('missed', window)} + {ended('failed', window)}"


def missed_share(window):
    return f"({missed(window)}) / ({missed(window)} + {ended('met', window)})"


def burn_rate(window):
    return f"{missed_share(window)} / $budget"


def deadlines(board):
    board.row("Deadlines")
    board.stat(
        "Deadlines met",
        "percentunit",
        "Share of the jobs with a deadline that ended in the time range and met it.",
        f"1 - {missed_share('$__range')}",
        decimals=2,
    )
    board.stat(
        "Error budget left",
        "percentunit",
        "Share of the error budget that is left, if the time range is the period of the objective, for example 30 days. "
        "Below 0 the objective is missed.",
        f"1 - {missed_share('$__range')} / $budget",
        thresholds=steps(RED, (0, ORANGE), (0.5, GREEN)),
        decimals=1,
    )
    board.stat(
        "Deadlines missed",
        "short",
        "Jobs that ended in the time range and missed their deadline, or failed before it.",
        f"({missed('$__range')}) or vector(0)",
        decimals=0,
    )
    board.stat(
        "Unfinished jobs",
        "short",
        "Unfinished jobs now, of all namespaces.",
        "max(shed_jobs_unfinished)",
        decimals=0,
    )
    board.stat(
        "Jobs at risk",
        "short",
        "Unfinished jobs whose deadline is in the future and whose calibrated PoCD is below 0.9. Jobs without a calibrated PoCD "
        "count by their PoCD. The alert ShedJobAtRisk has the same rule. Only the 500 jobs most at risk have series "
        "(metrics.jobs in the chart).",
        f"count({POCD} < 0.9 and on ({JOB}) {UNFINISHED} > time()) or vector(0)",
        thresholds=steps(GREEN, (1, ORANGE)),
        decimals=0,
    )
    board.stat(
        "Past their deadline",
        "short",
        "Unfinished jobs whose deadline has passed, among those with series of their own. Jobs with onMiss: Continue continue "
        "after their deadline.",
        f"count({UNFINISHED} <= time()) or vector(0)",
        thresholds=steps(GREEN, (1, ORANGE)),
        decimals=0,
    )


def deadlines_over_time(board):
    board.lines(
        "Burn rate of the error budget",
        "short",
        "Share of missed deadlines and failed jobs over each window, divided by the error budget. At 1 the budget lasts exactly as long as the "
        "objective's period. The alerts fire at 14.4 (1 h) and 6 (6 h), and at 3 (1 d) and 1 (3 d). A window in which no job "
        "ended has no value.",
        *[(burn_rate(window), window) for window in ("1h", "6h", "1d", "3d")],
        width=12,
        thresholds=steps("transparent", (1, ORANGE), (6, RED)),
        min=0,
    )
    board.lines(
        "Finished jobs",
        "short",
        "Jobs with a deadline that ended in each interval.",
        (ended("met", "$__rate_interval"), "met"),
        (ended("missed", "$__rate_interval"), "missed"),
        (ended("failed", "$__rate_interval"), "failed"),
        width=12,
        bars=True,
        stacked=True,
        min=0,
    )


def of_namespaces(metric):
    """The counts of all unfinished jobs now, as buckets of a histogram. They have no rate."""
    return f'sum by (le) (label_replace({metric}{CHOSEN}, "le", "$1", "at_most", "(.*)"))'


def pocd(board):
    board.row("Unfinished jobs")
    now = "Unfinished jobs at each moment, by {}. A darker cell has more jobs. Jobs near the bottom are likely to miss their deadline."
    board.heat(
        "Calibrated PoCD",
        "percentunit",
        now.format("calibrated PoCD"),
        of_namespaces("shed_jobs_pocd_calibrated"),
    )
    board.heat("PoCD", "percentunit", now.format("PoCD"), of_namespaces("shed_jobs_pocd"))
    board.heat(
        "Slack",
        "s",
        "Unfinished jobs at each moment, by the time between the expected completion and the deadline. Below 0 shed expects that "
        "they are late.",
        of_namespaces("shed_jobs_slack_seconds"),
    )
    counts = [f'sum(shed_jobs_pocd{{job_namespace=~"$namespace", at_most="{limit}"}})' for limit in ("0.5", "0.9", "0.99", "+Inf")]
    *limits, all_jobs = counts
    board.lines(
        "Jobs by PoCD",
        "short",
        "Number of unfinished jobs in each band of the PoCD.",
        (limits[0], "to 50 %"),
        (f"{limits[1]} - {limits[0]}", "50 to 90 %"),
        (f"{limits[2]} - {limits[1]}", "90 to 99 %"),
        (f"{all_jobs} - {limits[2]}", "above 99 %"),
        width=12,
        stacked=True,
        min=0,
        decimals=0,
    )
    remaining = of_namespaces("shed_jobs_remaining_seconds")
    board.lines(
        "Time until completion",
        "s",
        "Time until the expected completion of unfinished jobs, by quantile.",
        *[(f"histogram_quantile({quantile}, {remaining})", f"p{round(100 * quantile)}") for quantile in (0.5, 0.9)],
        width=12,
        min=0,
    )


def finished(board):
    board.row("Finished jobs")
    spans = [("shed_job_completion_slack_seconds", "in time"), ("shed_job_completion_lateness_seconds", "late")]
    board.lines(
        "Slack and lateness at completion",
        "s",
        f"Median of the time that was left at the completion of jobs in time, and of the time by which others were late. {ALL_NAMESPACES}",
        *[(f"histogram_quantile(0.5, sum by (le) (increase({metric}_bucket[1h])))", name) for metric, name in spans],
        width=12,
        min=0,
    )
    error = "sum by (prediction, passed) (increase(shed_prediction_squared_error_{}[1d]))"
    board.lines(
        "Brier score of predictions",
        "short",
        "Mean squared difference between a prediction and the outcome over a day: 0 is perfect, 0.25 is as good as a coin. By "
        f"prediction and by the share of the job's time that had passed. {ALL_NAMESPACES}",
        (f"{error.format('sum')} / {error.format('count')}", "{{prediction}}, {{passed}} passed"),
        width=12,
        min=0,
    )


def most_at_risk(board):
    limited = f"and on ({JOB}) {MOST_AT_RISK}"
    board.table(
        "Jobs most at risk",
        "short",
        "The 50 unfinished jobs with the lowest calibrated PoCD. Slack is the time between the expected completion and the "
        "deadline. A job's name opens its dashboard.",
        [("job_namespace", "Namespace"), ("job_name", "Job")],
        [
            (MOST_AT_RISK, "Calibrated PoCD", "percentunit"),
            (f"{of_jobs('shed_job_pocd')} {limited}", "PoCD", "percentunit"),
            (f"({UNFINISHED} - time()) {limited}", "Time to deadline", "s"),
            (f"{of_jobs('shed_job_slack_seconds')} {limited}", "Slack", "s"),
        ],
        ("Open the job", JOB_LINK),
    )


def workflows(board):
    keys = "job_namespace, workflow, stage"

    def of_runs(metric):
        return f"max by ({keys}) ({metric}{CHOSEN})"

    pocd = f"bottomk(50, {of_runs('shed_workflow_pocd')})"
    limited = f"and on ({keys}) {pocd}"
    board.table(
        "Runs of workflows most at risk",
        "short",
        "The 50 runs with the lowest PoCD of the whole run, with their open stage. Slack is the time between the expected "
        "completion of the run and its deadline. A panel without data means that no run has an open stage, or that fewer than "
        "3 earlier runs of its class have ended.",
        [("job_namespace", "Namespace"), ("workflow", "Run"), ("stage", "Stage")],
        [
            (pocd, "PoCD", "percentunit"),
            (f"({of_runs('shed_workflow_deadline_timestamp_seconds')} - time()) {limited}", "Time to deadline", "s"),
            (f"{of_runs('shed_workflow_slack_seconds')} {limited}", "Slack", "s"),
        ],
    )


def capacity(board):
    board.row("Capacity and clones")
    board.lines(
        "Capacity in use",
        "percentunit",
        "Share of the usable capacity that attempts hold, by resource. Usable is what other pods leave, and at most capacityShare "
        "of the cluster. At 100 % jobs wait and shed launches no clones.",
        (CAPACITY_SHARE, "{{resource}}"),
        min=0,
    )
    board.lines(
        "Attempts launched",
        "cps",
        "Attempts that shed launched per second, by kind: originals, clones and retries.",
        ("sum by (kind) (rate(shed_attempts_launched_total[$__rate_interval]))", "{{kind}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Clones refused",
        "cps",
        "Clones that the policy requested and shed did not launch, per second, by reason. With speculation.mode: Observe all "
        "clones of a job are refused with the reason observe.",
        ("sum by (reason) (rate(shed_clones_refused_total[$__rate_interval])) > 0", "{{reason}}"),
        stacked=True,
        min=0,
    )


def shares(board):
    board.row("Shares of namespaces")
    for title, metric, meaning in (
        ("Entitled share", "shed_share_entitled", "Share of the usable capacity that each namespace is entitled to, by its weight "
         "and the demand of all. A panel without data means that no Namespace has the label shed.dev/share, or that all unfinished jobs are in one namespace."),
        ("Held share", "shed_share_held", "Share of the usable capacity that attempts of each namespace hold. More than the "
         "entitled share is borrowed from others."),
        ("Owed share", "shed_share_owed", "Part of the entitled share that tasks of the namespace wait for while others hold it. "
         "It falls to 0 as their attempts finish."),
    ):
        query = f'max by (job_namespace) ({metric}{{job_namespace=~"$namespace"}})'
        board.lines(title, "percentunit", meaning, (query, "{{job_namespace}}"), min=0)


def losers(board):
    board.row("Attempts that did not win")
    launched = increase("shed_attempts_launched_total", "$__range", '{kind="clone"}')
    board.stat(
        "Clones that won",
        "percentunit",
        "Tasks won by a clone, divided by the clones launched in the time range. A low share means that clones cost capacity "
        "and save little.",
        f"{increase('shed_clone_wins_total', '$__range')} / {launched}",
        decimals=1,
    )
    won = increase("shed_attempt_slot_seconds_total", "$__range", '{outcome="won"}')
    board.stat(
        "Slot time of losers",
        "percentunit",
        "Share of slot time used by attempts that did not win their task, among attempts that finished in the time range.",
        f"1 - {won} / {increase('shed_attempt_slot_seconds_total', '$__range')}",
        decimals=1,
    )
    board.stat(
        "Saved by resuming",
        "s",
        "Time that winners saved in the time range because they began at a checkpoint.",
        increase("shed_resume_saved_seconds_total", "$__range"),
    )
    board.stat(
        "Lost to disruptions",
        "s",
        "Slot time used in the time range by attempts that were disrupted or stopped before their task was done.",
        increase("shed_disruption_lost_slot_seconds_total", "$__range"),
    )


def losers_over_time(board):
    board.lines(
        "Slot time by outcome",
        "short",
        "Slots that finished attempts used on average, by kind and outcome. Only won is useful. An attempt counts when it ends.",
        ("sum by (kind, outcome) (rate(shed_attempt_slot_seconds_total[$__rate_interval])) > 0", "{{kind}} {{outcome}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Slot time lost to disruptions",
        "short",
        "Slots used on average by attempts that were disrupted or stopped before their task was done, by reason.",
        ("sum by (reason) (rate(shed_disruption_lost_slot_seconds_total[$__rate_interval])) > 0", "{{reason}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Attempts finished",
        "cps",
        "Attempts that finished per second, by kind and outcome. An attempt is superseded if another one won its task.",
        ("sum by (kind, outcome) (rate(shed_attempts_finished_total[$__rate_interval])) > 0", "{{kind}} {{outcome}}"),
        stacked=True,
        min=0,
    )
    board.lines(
        "Attempts stopped",
        "cps",
        "Attempts that shed stopped per second, by rule. Settle stops the other attempts of a task that is won. Prune stops "
        "those that a faster attempt makes unnecessary.",
        ("sum by (reason) (rate(shed_attempts_stopped_total[$__rate_interval])) > 0", "{{reason}}"),
        stacked=True,
        min=0,
    )


def dashboard():
    board = Dashboard(
        "shed-fleet",
        "shed / Fleet",
        "Do jobs meet their deadlines, and what does that cost? docs/how-to/dashboards.md explains the panels.",
        [
            datasource_variable(),
            label_variable("namespace", "Namespace of jobs", "shed_deadlines_met_total", "job_namespace", True),
            text_variable("budget", "Error budget", "0.01"),
        ],
    )
    deadlines(board)
    deadlines_over_time(board)
    pocd(board)
    most_at_risk(board)
    workflows(board)
    finished(board)
    capacity(board)
    shares(board)
    losers(board)
    losers_over_time(board)
    return board
