//! A fit for people.

use super::analysis::{Fit, JobsFit, Quantiles, SampleFit, Tail};

pub(super) fn render(fit: &Fit) -> String {
    let mut text = format!("{}: {} jobs, {} tasks", fit.trace, fit.jobs, fit.tasks);
    if fit.tasks_of_no_time > 0 {
        text.push_str(&format!(", {} of them of no time", fit.tasks_of_no_time));
    }
    text.push_str(&format!(
        "\n  task time  {}\n",
        quantiles(fit.duration_s, " s")
    ));
    text.push_str("\nAll tasks\n");
    text.push_str(&distributions(&fit.all));
    text.push_str(&format!("  tail  {}\n", tail(fit.all.tail)));
    let jobs = &fit.per_job;
    text.push_str(&format!(
        "\nWithin jobs: {} jobs of {} tasks or more, {} tasks\n",
        jobs.jobs, jobs.min_tasks, jobs.tasks
    ));
    text.push_str(&within(jobs));
    text
}

fn distributions(fit: &SampleFit) -> String {
    let mut text = format!(
        "    {:<11} {:>16} {:>16} {:>9}  parameters\n",
        "distribution", "ln likelihood", "AIC", "distance"
    );
    let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.1}"));
    for (name, distribution) in &fit.distributions {
        let parameters = distribution.parameters.iter();
        let parameters: Vec<String> = parameters
            .map(|(name, value)| format!("{name} {value:.4}"))
            .collect();
        text.push_str(&format!(
            "  {} {:<11} {:>16} {:>16} {:>9.4}  {}\n",
            if fit.best == Some(name) { "*" } else { " " },
            name,
            number(distribution.ln_likelihood),
            number(distribution.aic),
            distribution.distance,
            parameters.join(", ")
        ));
    }
    text.push_str("  * least AIC; distance: largest gap between the distribution's and the sample's distribution functions\n");
    text
}

fn within(jobs: &JobsFit) -> String {
    let shares: Vec<String> = jobs
        .distributions
        .iter()
        .map(|(name, distribution)| format!("{name} {:.1} %", 100.0 * distribution.best_share))
        .collect();
    let percent = |share: Option<f64>| match share {
        Some(share) => format!("{:.1} %", 100.0 * share),
        None => "-".to_owned(),
    };
    let (pooled, median) = match jobs.pareto_shape {
        Some(shapes) => (
            format!("{:.2}", shapes.pooled),
            format!("{:.2}", shapes.median_of_jobs),
        ),
        None => ("-".to_owned(), "-".to_owned()),
    };
    format!(
        "  best distribution            {} ({} jobs of equal times left out)\n\
         \x20 longest / median    {}\n\
         \x20 > 1.5 medians       {} of the tasks\n\
         \x20 Pareto shape        pooled {pooled}, median of the jobs {median}\n\
         \x20 tail of t / median  {}\n",
        shares.join(", "),
        jobs.jobs_of_equal_times,
        quantiles(jobs.max_over_median, ""),
        percent(jobs.stragglers_share),
        tail(jobs.tail),
    )
}

fn quantiles(quantiles: Option<Quantiles>, unit: &str) -> String {
    match quantiles {
        Some(Quantiles { p50, p90, p99, max }) => {
            format!(
                "p50 {p50:.3}{unit}, p90 {p90:.3}{unit}, p99 {p99:.3}{unit}, max {max:.3}{unit}"
            )
        }
        None => "-".to_owned(),
    }
}

fn tail(tail: Option<Tail>) -> String {
    match tail {
        Some(tail) => format!(
            "Hill exponent {:.2}, standard error {:.2}, of the {} longest",
            tail.exponent, tail.standard_error, tail.k
        ),
        None => "too few different times for an exponent".to_owned(),
    }
}
