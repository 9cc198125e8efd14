//! Objects that are too large to be written, and the bounds that prevent them.

use super::*;

#[tokio::test]
async fn an_object_that_is_too_large_to_be_written_is_reported_once() {
    for (code, message) in [
        (413, "limit is 3145728"),
        (500, "etcdserver: request is too large"),
    ] {
        let api = Apiserver::new(fixtures::job_of_age(0, ""));
        let process = Process::start(&api);
        api.refuse("PUT job", code, "TooLarge", message);
        for _ in 0..2 {
            process.plan(&api.job(), originals(1));
            let error = process.look(&api).await.unwrap_err();
            assert!(matches!(error, Error::TooLarge(_)), "{error}");
        }
        assert_eq!(
            api.said(),
            [
                "PUT job status",
                "POST event ObjectTooLarge",
                "PUT job status"
            ]
        );
        api.script(|_| Fate::Served);
        process.look(&api).await.unwrap();
        assert!(!process.memory(&api.job()).reconcile.too_large_reported);
    }
}

#[tokio::test]
async fn a_job_launches_no_more_than_its_object_has_capacity_for() {
    // Annotations of others take most of it.
    let mut job = fixtures::job_of_age(0, "completions: 1000");
    let taken = crate::size::OBJECT_MAX - 40 * 1024;
    let annotations = job.metadata.annotations.get_or_insert_default();
    annotations.insert("example.com/large".to_owned(), "x".repeat(taken));
    let api = Apiserver::new(job);
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1000));
    process.look(&api).await.unwrap();
    let launched = api.job().status.clone().unwrap().attempts.originals;
    assert!((1..1000).contains(&launched), "{launched}");
    let bytes = crate::size::bytes(&*api.job());
    assert!(bytes <= crate::size::OBJECT_MAX, "{bytes}");
}
