//! What a visitor may see.

use tokio_stream::StreamExt;

use super::*;

/// Names that only `admin` may see.
const FOREIGN: [&str; 3] = ["rival", "merger", "merged"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_reviewed_once_and_used_again() {
    let site = Site::leading().await;
    let (admin, team) = (site.cookie("admin"), site.cookie("team"));
    for _ in 0..3 {
        site.json("/api/jobs", &admin).await;
    }
    assert_eq!(site.calls(), ["token admin", "access admin all"]);
    for _ in 0..3 {
        site.json("/api/jobs", &team).await;
        site.json("/api/jobs/team/tight", &team).await;
    }
    let mut calls = site.calls();
    calls.sort_unstable();
    let expected = [
        "access team all",
        "access team rival",
        "access team team",
        "token team",
    ];
    assert_eq!(calls, expected);
}

/// All bodies that a visitor can get.
async fn walk(site: &Site, token: &str) -> Vec<(String, String)> {
    let cookie = site.cookie(token);
    let mut found = Vec::new();
    let mut paths: Vec<String> = [
        "/api/session",
        "/api/jobs",
        "/api/jobs?ended=true",
        "/api/jobs/team/tight",
        "/api/jobs/team/done",
        "/api/jobs/team/none",
        "/api/jobs/rival/merger",
        "/api/jobs/rival/merged",
        "/api/jobs/rival/none",
        "/api/nodes",
        "/api/none",
        "/",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push("/api/jobs?ended=true&limit=1".to_owned());
    while let Some(path) = paths.pop() {
        let (status, body) = site.get(&path, &cookie).await;
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        if let Some(next) = answer["continue"].as_str() {
            paths.push(format!("/api/jobs?ended=true&limit=1&continue={next}"));
        }
        found.push((path, format!("{status} {body}")));
    }
    for path in ["/api/events?job=team/tight", "/api/events?job=rival/merger"] {
        let response = site.open(path, &cookie).await;
        let mut stream = response.into_body().into_data_stream();
        let mut text = String::new();
        // The nodes are the last event of the first look.
        while !text.contains("event: nodes") {
            let frame = stream.next().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&frame).unwrap());
        }
        found.push((path.to_owned(), text));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_foreign_namespace_is_in_any_response() {
    let site = Site::leading().await;
    let names = |walked: &[(String, String)]| {
        let bodies = walked.iter().map(|(_, body)| body.as_str());
        let all = bodies.collect::<String>();
        FOREIGN.map(|name| all.contains(name))
    };
    assert_eq!(
        names(&walk(&site, "admin").await),
        [true; 3],
        "admin sees them"
    );
    for token in ["team", "user-1"] {
        for (path, body) in walk(&site, token).await {
            for name in FOREIGN {
                assert!(!body.contains(name), "{token} {path}: {body}");
            }
        }
    }
    // What does not exist and what may not be seen look the same.
    let team = site.cookie("team");
    let absent = site.get("/api/jobs/team/none", &team).await;
    for path in [
        "/api/jobs/rival/merger",
        "/api/jobs/rival/merged",
        "/api/jobs/rival/none",
    ] {
        assert_eq!(site.get(path, &team).await, absent, "{path}");
    }
    let gets = site
        .calls()
        .into_iter()
        .filter(|call| call.contains("get "));
    assert!(
        gets.filter(|call| call.contains("merged")).count() <= 1,
        "for admin alone"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_have_the_visible_jobs_and_count_them_alone() {
    let site = Site::leading().await;
    let names = |list: &Value| -> Vec<String> {
        let jobs = list["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for (token, live, all, namespaces) in [
        ("admin", 3, 6, json!("all")),
        ("team", 2, 4, json!(["team"])),
        ("user-1", 0, 0, json!([])),
    ] {
        let cookie = site.cookie(token);
        let list = site.json("/api/jobs", &cookie).await;
        assert_eq!(
            (&list["total"], names(&list).len()),
            (&json!(live), live),
            "{token}"
        );
        assert_eq!(list["namespaces"], namespaces, "{token}");
        let list = site.json("/api/jobs?ended=true", &cookie).await;
        assert_eq!(
            (&list["total"], names(&list).len()),
            (&json!(all), all),
            "{token}"
        );
    }
    let team = site.cookie("team");
    let list = site.json("/api/jobs?ended=true", &team).await;
    assert_eq!(names(&list), ["tight", "loose", "done", "first"], "{list}");
    let done = &list["jobs"][2];
    let expected = json!({"namespace": "team", "name": "done", "kind": "DeadlineJob", "phase": "Complete",
        "completionTime": "2030-01-01T00:00:10Z", "tasks": 4, "succeeded": 4, "active": 0, "clones": 0, "waiting": 0});
    assert_eq!(*done, expected);
    // Page by page, it is the same.
    let (mut path, mut paged) = ("/api/jobs?ended=true&limit=1".to_owned(), Vec::new());
    loop {
        let page = site.json(&path, &team).await;
        paged.extend(names(&page));
        let Some(next) = page["continue"].as_str() else {
            break;
        };
        path = format!(
            "/api/jobs?ended=true&limit=1&continue={}",
            next.replace('@', "%40")
        );
    }
    assert_eq!(paged, names(&list));
    for (path, words) in [
        ("/api/jobs?ended=1", "use true or false"),
        ("/api/jobs?continue=@x/a/b/Job", "continue="),
        ("/api/nodes?limit=1", "unknown parameter"),
        ("/api/events?job=tight", "<namespace>/<name>"),
        ("/api/jobs/team/tight?kind=Pod", "kind=Pod"),
    ] {
        let (status, body) = site.get(path, &team).await;
        assert_eq!(status, 400, "{path}: {body}");
        assert!(body.contains(words), "{path}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_has_its_record_also_when_it_has_ended() {
    let site = Site::leading().await;
    let team = site.cookie("team");
    let job = site
        .json("/api/jobs/team/tight?kind=DeadlineJob", &team)
        .await;
    assert_eq!(
        job["record"]["attempts"].as_array().unwrap().len(),
        8,
        "{job}"
    );
    let done = site.json("/api/jobs/team/done", &team).await;
    assert_eq!(done["completionTime"], "2030-01-01T00:00:10Z");
    assert_eq!(
        (&done["phase"], &done["succeeded"]),
        (&json!("Complete"), &json!(4))
    );
    assert_eq!(done["record"]["attempts"][0]["node"], "node-of-done");
    let (status, _) = site.get("/api/jobs/team/done?kind=Job", &team).await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_at_random_cost_the_apiserver_little() {
    let site = Site::leading().await;
    site.page.clock.freeze_for_tests();
    let (team, admin) = (site.cookie("team"), site.cookie("admin"));
    let mut refused = 0;
    for number in 0..150 {
        let path = format!("/api/jobs/random-{number}/job");
        let (status, _) = site.get(&path, &team).await;
        refused += usize::from(status == 503);
        assert!(status == 404 || status == 503);
        assert_eq!(site.get(&path, &admin).await.0, 404);
    }
    assert_eq!(refused, 50);
    let reviews = site.calls();
    let named = reviews.iter().filter(|call| call.contains("random-"));
    assert_eq!(named.count(), 100, "for admin, one review is enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_those_that_the_visible_jobs_show() {
    let site = Site::leading().await;
    let nodes = async |token: &str| {
        let list = site.json("/api/nodes", &site.cookie(token)).await;
        let nodes = list["nodes"].as_array().unwrap().clone();
        let name = |node: &Value| node["name"].as_str().unwrap().to_owned();
        (nodes.iter().map(name).collect::<Vec<_>>(), nodes)
    };
    let (all, _) = nodes("admin").await;
    assert_eq!(all.len(), 6, "also those without evidence: {all:?}");
    let (own, shown) = nodes("team").await;
    assert_eq!(own, ["node-0", "node-1"]);
    assert_eq!(
        (&shown[0]["verdict"], &shown[0]["avoidedBy"]),
        (&json!("Slow"), &json!(["team"]))
    );
    assert_eq!(shown[0]["witnesses"].as_array().unwrap().len(), 2);
    assert!(nodes("user-1").await.0.is_empty());
}
