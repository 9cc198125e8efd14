"""One job: will it be in time?"""

from fleet import CAPACITY_SHARE
from grafana import GREEN, ORANGE, RED, Dashboard, datasource_variable, label_variable, steps

CHOSEN = '{job_namespace="$namespace", job_name="$job"}'


def of_job(metric):
    """One series, although the old leader's may still be there after a failover."""
    return f"max({metric}{CHOSEN})"


POCD, CALIBRATED = of_job("shed_job_pocd"), of_job("shed_job_pocd_calibrated")
DEADLINE = of_job("shed_job_deadline_timestamp_seconds")
EXPECTED = of_job("shed_job_expected_completion_timestamp_seconds")
SLACK = of_job("shed_job_slack_seconds")
EARLIEST = of_job("shed_job_earliest_feasible_deadline_timestamp_seconds")
TASKS, DONE = of_job("shed_job_tasks"), of_job("shed_job_tasks_done")
ATTEMPTS, CLONES = of_job("shed_job_attempts_live"), of_job("shed_job_clones_live")
SHARE_COLORS = steps(RED, (0.5, ORANGE), (0.9, GREEN))
TIME_COLORS = steps(RED, (0, GREEN))


def now(board):
    board.row("Now")
    board.stat(
        "Calibrated PoCD",
        "percentunit",
        "Probability that the job meets its deadline, with the clones that shed may still start.",
        CALIBRATED,
        thresholds=SHARE_COLORS,
        decimals=1,
    )
    board.stat(
        "PoCD",
        "percentunit",
        "Probability of completion before the deadline. It considers the current attempts only, not clones that shed may "
        "start later. Early in a job it is therefore a lower bound.",
        POCD,
        thresholds=SHARE_COLORS,
        decimals=1,
    )
    board.stat("Time to deadline", "s", "Time until the deadline. Below 0 it has passed.", f"{DEADLINE} - time()", thresholds=TIME_COLORS)
    board.stat(
        "Slack",
        "s",
        "Time between the expected completion and the deadline. Below 0 shed expects that the job is late.",
        SLACK,
        thresholds=TIME_COLORS,
    )
    board.stat("Deadline", "dateTimeAsIso", "Deadline of the job.", f"{DEADLINE} * 1000")
    board.stat("Expected completion", "dateTimeAsIso", "Time at which shed expects the last task to finish.", f"{EXPECTED} * 1000")


def history(board):
    board.row("Course of the job")
    board.lines(
        "PoCD",
        "percentunit",
        "PoCD and calibrated PoCD. A clone usually causes a step upwards, a straggler or a lost attempt a step downwards. The "
        "dashed line is the limit of the alert ShedJobAtRisk.",
        (CALIBRATED, "calibrated"),
        (POCD, "PoCD"),
        width=12,
        thresholds=steps("transparent", (0.9, GREEN)),
        min=0,
        max=1,
    )
    board.lines(
        "Progress towards the deadline",
        "s",
        "Time left until the deadline and until the expected completion. While tasks progress as expected, both lines fall by one "
        "second per second. An expected completion that stays level shows that tasks do not progress.",
        (f"{DEADLINE} - time()", "to the deadline"),
        (f"{EXPECTED} - time()", "to the expected completion"),
        width=12,
    )
    board.lines(
        "Slack",
        "s",
        "Time between the expected completion and the deadline.",
        (SLACK, "slack"),
        width=12,
        thresholds=steps(RED, (0, "transparent")),
    )
    board.lines(
        "Margin to the earliest feasible deadline",
        "s",
        "Time between the earliest deadline that reaches the job's target PoCD and its deadline, from the last estimate. Below 0 the "
        "target is not reachable.",
        (f"{DEADLINE} - {EARLIEST}", "margin"),
        width=12,
        thresholds=steps(RED, (0, "transparent")),
    )


def work(board):
    board.row("Tasks and attempts of the job")
    board.lines(
        "Tasks done",
        "short",
        "Tasks of the job that are done, and all its tasks. A divided task counts as its segments.",
        (DONE, "done"),
        (TASKS, "all"),
        width=12,
        min=0,
        decimals=0,
    )
    board.lines(
        "Live attempts",
        "short",
        "Attempts of the job that hold capacity and may still win: first attempts and retries, and clones.",
        (f"{ATTEMPTS} - {CLONES}", "first attempts and retries"),
        (CLONES, "clones"),
        width=12,
        stacked=True,
        min=0,
        decimals=0,
    )


def surroundings(board):
    board.row("Attempts and capacity, all jobs")
    board.lines(
        "Capacity in use",
        "percentunit",
        "Share of the usable capacity that attempts of all jobs hold, by resource. At 100 % this job may wait for others.",
        (CAPACITY_SHARE, "{{resource}}"),
        min=0,
    )
    board.lines(
        "Attempts launched and finished",
        "cps",
        "Attempts of all jobs per second, by kind and outcome. The job's status has the totals of its own.",
        ("sum by (kind) (rate(shed_attempts_launched_total[$__rate_interval])) > 0", "launched {{kind}}"),
        ("sum by (kind, outcome) (rate(shed_attempts_finished_total[$__rate_interval])) > 0", "{{kind}} {{outcome}}"),
        min=0,
    )
    board.lines(
        "Clones refused",
        "cps",
        "Clones of all jobs that the policy requested and shed did not launch, per second, by reason.",
        ("sum by (reason) (rate(shed_clones_refused_total[$__rate_interval])) > 0", "{{reason}}"),
        stacked=True,
        min=0,
    )


def dashboard():
    deadline = "shed_job_deadline_timestamp_seconds"
    board = Dashboard(
        "shed-job",
        "shed / Job",
        "Will this job meet its deadline, and why not? docs/how-to/dashboards.md explains the panels.",
        [
            datasource_variable(),
            label_variable("namespace", "Namespace", deadline, "job_namespace", False),
            label_variable("job", "Job", deadline + '{job_namespace="$namespace"}', "job_name", False),
        ],
        span="now-3h",
    )
    now(board)
    history(board)
    work(board)
    surroundings(board)
    return board
