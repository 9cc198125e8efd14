use super::*;
use crate::estimate::distribution::AttemptDistribution;
use crate::estimate::log_normal::LogNormalDistribution;

fn now(seconds: f64) -> Instant {
    Instant::default().plus(Span::from_seconds_f64(seconds))
}

fn ours() -> Tenant {
    Tenant::from("ours")
}

fn of_class(key: &str, class: &str, sample: &Sample) -> (JobKey, Lesson) {
    let lesson = Lesson {
        tenant: ours(),
        class: JobClass::from(class),
        times: JobTimes::new(sample),
    };
    (JobKey::from(key), lesson)
}

/// The quantiles of a Pareto distribution: a job without chance.
fn job(t_min: f64, beta: f64, tasks: u32) -> Sample {
    Sample::default().with_pseudo_attempts(&ParetoDistribution { t_min, beta }, tasks)
}

/// A history of one class whose jobs came and went one after another.
fn history(class: &str, jobs: &[Sample]) -> History {
    let mut history = History::default();
    for (position, sample) in (0..).zip(jobs) {
        let key = format!("{class}-{position}");
        history = history.after(now(0.0), [of_class(&key, class, sample)]);
    }
    history.after(now(0.0), [])
}

#[test]
fn without_a_class_the_models_distribution_is_believed() {
    let taught = history("etl", &[job(10.0, 1.2, 64)]);
    assert_eq!(
        taught.shape_prior(&ours(), None),
        ShapePrior::with_t_min(1.0)
    );
    let unknown = JobClass::from("other");
    assert_eq!(taught.least(Some(&unknown)), None);
    let model = ParetoDistribution {
        t_min: 1.0,
        beta: 2.0,
    };
    assert_eq!(taught.ratio_distribution(&ours(), None), model.into());
}

#[test]
fn a_class_is_believed_the_more_the_more_jobs_it_had() {
    let etl = JobClass::from("etl");
    let beta = |jobs: &[Sample]| history("etl", jobs).shape_prior(&ours(), Some(&etl)).beta;
    let one = job(10.0, 5.0, 8);
    let few = beta(std::slice::from_ref(&one));
    let many = beta(&[one.clone(), one.clone(), one]);
    assert!(2.0 < few && few < many && many < 6.0, "{few} {many}");
    let large = beta(&[job(10.0, 5.0, 64), job(30.0, 5.0, 64), job(5.0, 5.0, 64)]);
    assert!((large / 5.0 - 1.0).abs() < 0.1, "{large}");
}

/// Kubernetes has the ends of containers in whole seconds.
#[test]
fn equal_times_show_that_times_are_alike() {
    let etl = JobClass::from("etl");
    let prior = |jobs: &[Sample]| history("etl", jobs).shape_prior(&ours(), Some(&etl));
    let equal = |count| Sample::new(&vec![20.0; count], &[]);
    for (runs, least_beta) in [(1, 3.5), (2, 5.5), (5, 15.0)] {
        let beta = prior(&vec![equal(4); runs]).beta;
        assert!(beta > least_beta, "{runs} runs of 4 tasks: {beta}");
    }
    // A run of one task shows nothing of the spread, but several runs do.
    let single = |runs| prior(&vec![equal(1); runs]).beta;
    assert_eq!(single(1), 2.0);
    assert!(single(5) > 2.9, "{}", single(5));
    let mut growing = [20.0, 60.0, 200.0].map(|time| Sample::new(&[time], &[]));
    let grown = prior(&growing).beta;
    assert!(grown < single(3), "{grown}");
    // Of the tenant's jobs of several classes, their times tell nothing about each other.
    growing.reverse();
    let mut several = history("a", &growing[..1]);
    several = several.after(now(0.0), [of_class("b-0", "b", &growing[2])]);
    several = several.after(now(0.0), []);
    assert_eq!(several.shape_prior(&ours(), Some(&etl)).beta, 2.0);
}

#[test]
fn an_unknown_class_is_believed_to_be_like_the_tenants_others() {
    let taught = history("etl", &[job(10.0, 5.0, 64), job(30.0, 5.0, 64)]);
    let (etl, other) = (JobClass::from("etl"), JobClass::from("other"));
    let beta = |class| taught.shape_prior(&ours(), Some(class)).beta;
    assert!(
        beta(&other) > 3.0 && beta(&other) < beta(&etl),
        "{}",
        beta(&other)
    );
}

#[test]
fn least_times_are_those_of_the_classs_jobs() {
    let etl = JobClass::from("etl");
    let times = [
        Sample::new(&[10.0, 20.0], &[]),
        Sample::new(&[40.0], &[900.0]),
    ];
    let least = history("etl", &times).least(Some(&etl)).unwrap();
    assert!((least - 20.0).abs() < 1e-9, "{least}");
    let nothing = history("etl", &[Sample::new(&[], &[5.0])]);
    assert_eq!(nothing.least(Some(&etl)), None);
}

#[test]
fn the_distribution_of_a_class_ignores_the_sizes_of_its_jobs() {
    let distribution: Distribution = LogNormalDistribution::new(0.0, 0.4).unwrap().into();
    let job = |scale: f64| Sample::default().with_pseudo_attempts(&distribution.scaled(scale), 60);
    let taught = history("etl", &[job(10.0), job(100.0), job(1000.0)]);
    let got = taught.ratio_distribution(&ours(), Some(&JobClass::from("etl")));
    let spread = |distribution: &Distribution| {
        distribution.quantile(libm::log(0.1)) / distribution.quantile(libm::log(0.5))
    };
    assert!(
        (spread(&got) / spread(&distribution) - 1.0).abs() < 0.05,
        "{}",
        spread(&got)
    );
}

#[test]
fn a_job_teaches_once_when_it_is_gone() {
    let seen = || [of_class("a", "etl", &job(10.0, 3.0, 20))];
    let etl = JobClass::from("etl");
    let open = History::default()
        .after(now(0.0), seen())
        .after(now(1.0), seen());
    assert_eq!(open.class(&etl), None);
    let gone = open.after(now(2.0), []);
    assert!(gone.class(&etl).is_some());
    assert_eq!(gone.after(now(3.0), []), gone);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut history = History::default();
    for position in 0..300 {
        let class = format!("class-{position}");
        let seen = of_class("a", &class, &job(10.0, 3.0, 500));
        let at = now(f64::from(position));
        history = history.after(at, [seen]).after(at, []);
    }
    assert_eq!(history.classes.len(), CLASSES_MAX);
    assert_eq!(history.class(&JobClass::from("class-43")), None);
    assert!(history.class(&JobClass::from("class-44")).is_some());
    let own = &history.tenants[&ours()].jobs;
    assert_eq!(own.jobs.len(), PER_TENANT_MAX);
    let newest = own.jobs.last().unwrap();
    assert_eq!(newest.ended.len(), PER_JOB_MAX);
}

#[test]
fn a_tenant_of_many_classes_costs_no_other_tenant_a_class() {
    let mut history = history("ours/nightly", &[job(10.0, 3.0, 5)]);
    for position in 1..=CLASSES_MAX + 1 {
        let (key, mut lesson) = of_class("a", &format!("evil/{position}"), &job(1.0, 3.0, 5));
        lesson.tenant = Tenant::from("evil");
        let at = now(position as f64);
        history = history.after(at, [(key, lesson)]).after(at, []);
    }
    let has = |class: &str| history.class(&JobClass::from(class)).is_some();
    assert_eq!(history.classes.len(), CLASSES_MAX);
    assert!(has("ours/nightly") && !has("evil/2") && has("evil/3"));
    // Nor does it when the stored text is cut.
    history.keep(|_| 2);
    assert!(history.class(&JobClass::from("ours/nightly")).is_some());
}

#[test]
fn a_history_is_read_back_as_it_was_written() {
    let taught = history("etl", &[job(10.0, 5.0, 64)]);
    let text = serde_json::to_string(&taught).unwrap();
    assert_eq!(serde_json::from_str::<History>(&text).unwrap(), taught);
}

#[test]
fn a_shrunk_distribution_lies_between_sample_and_prior() {
    let believed: Distribution = LogNormalDistribution::new(0.0, 1.0).unwrap().into();
    let seen: Distribution = LogNormalDistribution::new(0.0, 0.1).unwrap().into();
    let spread = |count| {
        let sample = Sample::default().with_pseudo_attempts(&seen, count);
        match shrunk(DistributionKind::LogNormal, &sample, &believed) {
            Distribution::LogNormal(distribution) => distribution.sigma(),
            other => panic!("{other:?}"),
        }
    };
    let (none, some, many) = (spread(0), spread(8), spread(800));
    assert!(
        none > some && some > many && many > 0.1 && many < 0.15,
        "{none} {some} {many}"
    );
}

#[test]
fn all_jobs_of_another_tenant_count_as_one_attempt() {
    let (etl, other) = (JobClass::from("etl"), JobClass::from("other"));
    let mut history = history("etl", &[job(10.0, 5.0, 64), job(30.0, 5.0, 64)]);
    let own = history.shape_prior(&ours(), Some(&etl)).beta;
    let liar = |number: u32| {
        let (_, lesson) = of_class("", "lies", &job(1e-3, 0.01, 500));
        let tenant = Tenant::from("liar");
        (
            JobKey::from(&*format!("lie-{number}")),
            Lesson { tenant, ..lesson },
        )
    };
    for number in 0..100 {
        let seen = history.after(now(f64::from(number)), [liar(number)]);
        history = seen.after(now(f64::from(number)), []);
    }
    let lied_to = history.shape_prior(&ours(), Some(&etl)).beta;
    assert!((own / lied_to - 1.0).abs() < 0.05, "{own} {lied_to}");
    // For a tenant without observations, one other tenant does not decide either.
    let stranger = Tenant::from("stranger");
    let beta = history.shape_prior(&stranger, Some(&other)).beta;
    assert!(beta > 1.0 && beta < 3.0, "{beta}");
    assert!(
        history
            .shape_prior(&Tenant::from("liar"), Some(&other))
            .beta
            < 0.5
    );
}

#[test]
fn a_history_of_before_tenants_learned_apart_is_read() {
    let text = r#"{"cluster":{"jobs":[],"updated":0},"classes":{},
        "open":{"a":["etl",{"ended":[5],"running":[]}]}}"#;
    assert_eq!(
        serde_json::from_str::<History>(text).unwrap(),
        History::default()
    );
}
