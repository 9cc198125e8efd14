//! Results of `run` and `compare` in every format, and the words of completion scripts.

use crate::common::{Folder, TINY, called, gzip, path, succeeds};

/// The trace without clones, in its own order.
fn on_two_slots(trace: &std::path::Path) -> serde_json::Value {
    let printed = succeeds(&[
        "run",
        "--trace",
        path(trace),
        "--slots",
        "2",
        "--policy",
        "hadoop-ns",
        "--order",
        "fifo",
        "--check",
        "--format",
        "json",
    ]);
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn a_tiny_trace_gives_the_same_figures_in_every_format() {
    let folder = Folder::new("formats");
    let plain = folder.file("tiny.csv", TINY.as_bytes());
    let gzip = folder.file("tiny.csv.gz", &gzip(TINY.as_bytes()));
    let mut digests = Vec::new();
    for file in [&plain, &gzip] {
        let row = on_two_slots(file);
        // a: 0-2 and 0-3, then 3-4.5; b: 2-6.
        assert_eq!(row["jobs"], 2);
        assert_eq!(row["jobs_met"], 1);
        assert_eq!(row["pocd"], 1.0);
        assert_eq!(row["mean_flowtime_s"], 4.75);
        assert_eq!(row["machine_seconds"], 10.5);
        for field in [
            "policy",
            "p50_flowtime_s",
            "p90_flowtime_s",
            "p99_flowtime_s",
            "clones",
            "clone_wins",
            "machine_seconds_wasted",
            "utilisation",
            "events",
            "wall_s",
            "seed",
        ] {
            assert!(!row[field].is_null(), "{field}");
        }
        digests.push(row["digest"].clone());
    }
    assert_eq!(digests[0], digests[1]);
    for format in ["table", "csv"] {
        let output = called(&[
            "run",
            "--trace",
            path(&plain),
            "--slots",
            "2",
            "--format",
            format,
        ]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("shed-prime"), "{text}");
    }
}

#[test]
fn the_order_capacity_is_fifo_in_a_trace_and_reported() {
    let run = |order| {
        let flags = ["run", "--trace", "setup:A{jobs=6}", "--slots", "8"];
        let flags = [&flags[..], &["--policy", "hadoop-ns", "--format", "json"]].concat();
        let output = called(&[&flags[..], &["--order", order]].concat());
        let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let note = String::from_utf8(output.stderr).unwrap();
        (row["mean_flowtime_s"].clone(), note)
    };
    let (capacity, note) = run("capacity");
    assert!(
        note.contains("one tenant") && note.contains("`fifo`"),
        "{note}"
    );
    let (fifo, note) = run("fifo");
    assert_eq!(fifo, capacity);
    assert!(!note.contains("one tenant"), "{note}");
}

#[test]
fn nodes_have_resources_and_a_fate() {
    let folder = Folder::new("nodes");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let nodes = folder.file("nodes.csv", b"name,cpu,memory_mib,count\nn,2,1000,2\n");
    let lost = folder.file("changes.csv", b"node,at_s,factor\nn-0,1,0\nn-0,3,1\n");
    let flags = [
        "run",
        "--trace",
        path(&trace),
        "--nodes",
        path(&nodes),
        "--check",
    ];
    let run = |more: &[&str]| -> serde_json::Value {
        let args: Vec<&str> = flags.iter().chain(more).copied().collect();
        let output = called(&[&args[..], &["--format", "json"]].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let calm = run(&["--policy", "hadoop-ns"]);
    // a spreads over both nodes, so that b waits for a whole one: until 2, and ends at 6.
    assert_eq!(calm["mean_flowtime_s"], (4.5 + 5.0) / 2.0);
    let stormy = run(&["--policy", "hadoop-ns", "--node-changes", path(&lost)]);
    assert_eq!(stormy["jobs_completed"], 2);
    assert!(stormy["disruptions"].as_u64() > Some(0), "{stormy}");
    assert!(stormy["mean_flowtime_s"].as_f64() > calm["mean_flowtime_s"].as_f64());
}

#[test]
fn compare_names_a_winner_where_paired_differences_are_clear() {
    let args = [
        "compare",
        "--trace",
        "setup:A{jobs=30}",
        "--slots",
        "138",
        "--deadline-factor",
        "1.5",
        "--load",
        "0.6",
        "--policy",
        "hadoop-ns,shed-plus",
        "--order",
        "fifo",
        "--resume",
        "offset",
        "--launch-overhead",
        "5%",
        "--first-report",
        "5%",
        "--seed",
        "0..8",
    ];
    let output = called(&args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let winner = text
        .lines()
        .find(|line| line.trim_start().starts_with("* "))
        .unwrap();
    assert!(winner.contains("shed-plus{"), "{text}");
    assert!(winner.contains("8 seeds"), "{text}");
    let json = called(&[&args[..], &["--format", "json"]].concat());
    let lines = String::from_utf8_lossy(&json.stdout).into_owned();
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

#[test]
fn machines_of_half_speed_take_twice_the_time() {
    let folder = Folder::new("slowdown");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let nodes = folder.file("nodes.csv", b"name,cpu,memory_mib,count\nn,2,1000,2\n");
    let curve = |name: &str, worst: f64| {
        let header = "suite,test,vm_sku,lifespan,region,quantile,slowdown_vs_median";
        let best = if worst == 2.0 { 2.0 } else { 1.0 };
        let text = format!("{header}\na,b,c,d,e,0,{best}\na,b,c,d,e,1,{worst}\n");
        folder.file(name, text.as_bytes())
    };
    let mean = |slowdown: &std::path::Path, period: &str, seed: &str| -> f64 {
        let args = [
            "run",
            "--trace",
            path(&trace),
            "--nodes",
            path(&nodes),
            "--check",
            "--seed",
            seed,
            "--policy",
            "hadoop-ns",
            "--format",
            "json",
            "--slowdown",
            path(slowdown),
            "--slowdown-period",
            period,
        ];
        let row: serde_json::Value = serde_json::from_str(&succeeds(&args)).unwrap();
        row["mean_flowtime_s"].as_f64().unwrap()
    };
    // a: 0-4 and 0-6, then 6-9; b waits for a whole node until 4 and ends at 12.
    assert_eq!(
        mean(&curve("twice.csv", 2.0), "1000000", "0"),
        (9.0 + 11.0) / 2.0
    );
    // Any speed from full (4.75 s) to a third of it, different for each seed.
    let varied = curve("varied.csv", 3.0);
    let means: Vec<f64> = ["0", "1", "2"]
        .map(|seed| mean(&varied, "1", seed))
        .to_vec();
    assert!(
        means.iter().all(|mean| (4.75..14.25).contains(mean)),
        "{means:?}"
    );
    assert!(means[0] != means[1] && means[1] != means[2], "{means:?}");
}

#[test]
fn the_standard_workload_format_is_read_plain_and_gzipped() {
    let folder = Folder::new("swf");
    // Job, submit, wait, run, processors, …; the third has no run time and is left out.
    let text = "\
; Version: 2
; MaxProcs: 2
1 0 0 10 2 -1 512 2 20 1024 1 1 1 1 1 1 -1 -1
2 5 0 4 -1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1
3 6 0 -1 1 -1 -1 1 5 -1 0 1 1 1 1 1 -1 -1
";
    let plain = folder.file("log.swf", text.as_bytes());
    let packed = folder.file("log.swf.gz", &gzip(text.as_bytes()));
    for file in [&plain, &packed] {
        let row = on_two_slots(file);
        assert_eq!((&row["jobs"], &row["tasks"]), (&2.into(), &3.into()));
        // The first takes both slots until 10; the second waits and ends at 14.
        assert_eq!(row["mean_flowtime_s"], (10.0 + 9.0) / 2.0);
        assert_eq!(row["machine_seconds"], 24.0);
    }
    // A processor is a core: a node of one core runs one at a time.
    let nodes = folder.file("nodes.csv", b"name,cpu,memory_mib\nn,1,100\n");
    let args = [
        "run",
        "--trace",
        path(&plain),
        "--nodes",
        path(&nodes),
        "--format",
        "json",
    ];
    let row: serde_json::Value = serde_json::from_str(&succeeds(&args)).unwrap();
    assert_eq!(row["machine_seconds"], 24.0);
}

#[test]
fn rows_of_jobs_and_attempts_add_up_to_the_result() {
    let folder = Folder::new("records");
    let (jobs, attempts) = (
        folder.0.join("jobs.jsonl"),
        folder.0.join("attempts.csv.gz"),
    );
    let args = [
        "run",
        "--trace",
        "setup:A{jobs=30}",
        "--slots",
        "138",
        "--deadline-factor",
        "1.5",
        "--load",
        "0.8",
        "--resume",
        "offset",
        "--launch-overhead",
        "5%",
        "--format",
        "json",
        "--jobs",
        path(&jobs),
        "--attempts",
        path(&attempts),
    ];
    let result: serde_json::Value = serde_json::from_str(&succeeds(&args)).unwrap();
    let text = std::fs::read_to_string(&jobs).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(result["jobs"], rows.len());
    let met = rows.iter().filter(|row| row["met"] == true).count();
    assert_eq!(result["jobs_met"], met);
    let flowtimes = rows.iter().filter_map(|row| row["flowtime_s"].as_f64());
    let mean = flowtimes.sum::<f64>() / rows.len() as f64;
    assert!((mean - result["mean_flowtime_s"].as_f64().unwrap()).abs() < 1e-6);
    assert_eq!(rows[0]["policy"], result["policy"]);

    let packed = std::fs::File::open(&attempts).unwrap();
    let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(packed));
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let columns = ["placed_s", "ended_s", "outcome", "kind"].map(at);
    let (mut held, mut count, mut won, mut clones) = (0.0, 0, 0, 0);
    for row in reader.records() {
        let row = row.unwrap();
        let [placed, ended, outcome, kind] = columns.map(|at| row.get(at).unwrap());
        held += ended.parse::<f64>().unwrap() - placed.parse::<f64>().unwrap();
        count += 1;
        won += u64::from(outcome == "won");
        clones += u64::from(kind == "clone");
    }
    assert!((held - result["machine_seconds"].as_f64().unwrap()).abs() < 1e-3);
    assert_eq!(result["attempts"], count);
    assert_eq!(result["tasks"], won);
    assert_eq!(result["clones"], clones);
    assert!(clones > 0);
}

#[test]
fn the_nodes_of_the_testbed_have_328_cores() {
    let args = [
        "run",
        "--trace",
        "setup:P-4{jobs=3}",
        "--nodes",
        "setup:D",
        "--format",
        "json",
    ];
    let row = succeeds(&args);
    assert!(row.contains("\"jobs_completed\":3"), "{row}");
}
