//! Capacity planning: answers that can be worked out by hand, what is said where there is no answer,
//! and input that is faulty.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Folder, called, path, run_fails, succeeds};

/// Ten jobs at one instant, each a task of 10 s; five may take 10 s, five 20 s. Ten slots meet all
/// deadlines, five meet all but none less.
const PAIRS: &str = "\
job_id,arrival_s,task_id,duration_s,cpu,memory_mib,deadline_s
a,0,0,10,1,100,10
b,0,0,10,1,100,10
c,0,0,10,1,100,10
d,0,0,10,1,100,10
e,0,0,10,1,100,10
f,0,0,10,1,100,20
g,0,0,10,1,100,20
h,0,0,10,1,100,20
i,0,0,10,1,100,20
j,0,0,10,1,100,20
";

/// As [`PAIRS`], with a job that is late on any cluster and one that is large.
fn hopeless() -> String {
    format!("{PAIRS}late,0,0,30,1,100,20\nlarge,0,0,1,8,100,20\n")
}

fn nodes(folder: &Folder, cpu: u32, count: u32) -> PathBuf {
    let text = format!("name,cpu,memory_mib,count\nnode,{cpu},1000,{count}\n");
    folder.file("nodes.csv", text.as_bytes())
}

fn json(args: &[&str]) -> Vec<Value> {
    let text = succeeds(&[&["size", "--format", "json", "--order", "edf"], args].concat());
    let rows = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    rows.collect()
}

#[test]
fn the_smallest_number_of_slots_and_share_and_factor_are_found() {
    let folder = Folder::new("size-by");
    let trace = folder.file("pairs.csv", PAIRS.as_bytes());
    let size = |target: &str, more: &[&str]| {
        let shared = ["--trace", path(&trace), "--target", target, "--seeds", "2"];
        let rows = json(&[&shared[..], &["--policy", "hadoop-ns"], more].concat());
        assert_eq!(rows.len(), 1);
        rows[0].clone()
    };
    let row = size("1", &[]);
    assert_eq!((&row["size"], &row["unit"]), (&5.0.into(), &"slots".into()));
    assert_eq!((&row["seeds"], &row["deadlines"]), (&2.into(), &20.into()));
    // No number of deadlines shows that all are met.
    assert_eq!(
        (&row["size_high"], &row["met"]),
        (&Value::Null, &1.0.into())
    );
    assert_eq!(size("0.5", &[])["size"], 4.0, "three meet four");
    let row = size("1", &["--slots", "20", "--by", "lambda"]);
    assert_eq!((&row["size"], &row["today"]), (&0.25.into(), &1.0.into()));
    let row = size("1", &["--slots", "5", "--by", "deadline"]);
    assert_eq!((&row["size"], &row["today"]), (&1.0.into(), &1.0.into()));
    let row = size("1", &["--slots", "3", "--by", "deadline"]);
    // Three slots are done with ten tasks after four turns: 40 s instead of 20 s.
    assert_eq!(row["size"], 2.0);
    let curve = row["curve"].as_array().expect("points");
    let met: Vec<u64> = curve
        .iter()
        .filter_map(|p| p["deadlines_met"].as_u64())
        .collect();
    assert_eq!(met.len(), curve.len());
    assert!(met.is_sorted() && met.contains(&20), "{met:?}");
}

#[test]
fn nodes_are_counted_in_the_shape_of_given_and_recorded_ones() {
    let folder = Folder::new("size-nodes");
    let trace = folder.file("pairs.csv", PAIRS.as_bytes());
    let nodes = nodes(&folder, 2, 4);
    let shared = ["--trace", path(&trace), "--nodes", path(&nodes)];
    let wanted = ["--target", "1", "--policy", "hadoop-ns,shed-prime"];
    let rows = json(&[&shared[..], &wanted].concat());
    assert_eq!(rows.len(), 2);
    for row in &rows {
        // Five slots are two and a half nodes.
        assert_eq!((&row["size"], &row["unit"]), (&3.0.into(), &"nodes".into()));
        assert_eq!(row["today"], 4.0);
    }
    let recording = folder.0.join("recording");
    let run = ["run", "--policy", "hadoop-ns", "--record", path(&recording)];
    succeeds(&[&run[..], &shared].concat());
    let size = ["--recording", path(&recording), "--seeds", "2"];
    let again = json(&[&size[..], &wanted].concat());
    for row in &again {
        assert_eq!((&row["size"], &row["today"]), (&3.0.into(), &4.0.into()));
    }
    let few = folder.file("few.csv", b"name,cpu,memory_mib\nfew,0.5,50\n");
    let on_few = ["size", "--target", "1", "--nodes", path(&few)];
    run_fails(
        &[&on_few[..], &size].concat(),
        "recording: field `cpu`",
        &["no node of the cluster has that much"],
    );
}

#[test]
fn what_no_size_can_meet_is_named_and_bounds_the_answer() {
    let folder = Folder::new("size-hopeless");
    let trace = folder.file("hopeless.csv", hopeless().as_bytes());
    let nodes = nodes(&folder, 4, 2);
    let args = |target| {
        let shared = [
            "--trace",
            path(&trace),
            "--nodes",
            path(&nodes),
            "--seeds",
            "1",
        ];
        let args = ["size", "--policy", "hadoop-ns", "--target", target];
        [&args[..], &shared].concat()
    };
    let text = succeeds(&args("0.9"));
    for part in [
        "12 deadlines on 1 seeds, target 90 %",
        "none",
        "no size can meet more than 83.3 %",
        "no node is large enough for the job: large.",
        "each takes the shortest of 60 attempts: late.",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    let rows = json(&args("0.8")[1..]);
    assert_eq!(
        (&rows[0]["size"], &rows[0]["cannot_be_met"]),
        (&2.0.into(), &2.into())
    );
    // The bound that the user sets is named too.
    let text = succeeds(&[&args("0.8")[..], &["--most", "1"]].concat());
    assert!(
        text.contains("the largest that was tried (--most)"),
        "{text}"
    );
    let few = folder.file("few.csv", b"name,cpu,memory_mib\nfew,0.5,50\n");
    run_fails(
        &[
            "size",
            "--target",
            "0.9",
            "--trace",
            path(&trace),
            "--nodes",
            path(&few),
        ],
        "hopeless.csv:2",
        &["field `cpu`", "no node of the cluster has that much"],
    );
}

#[test]
fn the_chart_and_points_have_every_policy_on_any_thread_count() {
    let folder = Folder::new("size-chart");
    let out = folder.0.join("size.svg");
    let size = |threads: &str| {
        let output = called(&[
            "size",
            "--preset",
            "A",
            "--trace",
            "setup:A{jobs=8}",
            "--slots",
            "24",
            "--most",
            "60",
            "--target",
            "0.8",
            "--policy",
            "hadoop-ns",
            "--policy",
            "shed-plus",
            "--seeds",
            "2",
            "--format",
            "csv",
            "--out",
            path(&out),
            "--threads",
            threads,
        ]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("2 of 2 policies open: hadoop-ns, shed-plus"),
            "{said}"
        );
        let chart = std::fs::read_to_string(&out).expect("a chart");
        (String::from_utf8(output.stdout).expect("UTF-8"), chart)
    };
    let (points, chart) = size("1");
    for part in [
        "hadoop-ns: none",
        "shed-plus: ",
        "target 80 %",
        "deadlines met, %",
    ] {
        assert!(chart.contains(part), "`{part}` is not in the chart");
    }
    let answers = points.lines().filter(|line| line.contains(",true,"));
    assert_eq!(answers.count(), 1, "{points}");
    assert_eq!(size("5"), (points, chart));
}

#[test]
fn faulty_questions_are_answered_with_what_is_right() {
    let folder = Folder::new("size-faults");
    let bare = "job_id,arrival_s,task_id,duration_s\na,0,0,10\n";
    let bare = folder.file("bare.csv", bare.as_bytes());
    let size = |more: &[&str]| {
        let args = ["size", "--trace", path(&bare), "--slots", "4"];
        let args = [&args[..], more].concat();
        args.into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let fails = |args: &[String], file: &str, what: &[&str]| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run_fails(&args, file, what);
    };
    fails(&size(&["--target", "99"]), "--target", &["at most 1"]);
    fails(&size(&["--target", "0"]), "--target", &["above 0"]);
    let valid = |more: &[&str]| size(&[&["--target", "0.9"], more].concat());
    fails(
        &valid(&[]),
        "bare.csv",
        &["no job has a deadline", "--deadline-factor"],
    );
    let valid = |more: &[&str]| valid(&[&["--deadline-factor", "2"], more].concat());
    fails(
        &valid(&["--policy", "best"]),
        "--policy",
        &["unknown policy `best`"],
    );
    fails(
        &valid(&["--load", "0.5,0.9"]),
        "--load",
        &["takes one value"],
    );
    fails(
        &valid(&["--least", "9", "--most", "8"]),
        "--most 8",
        &["that can be tried, 9"],
    );
    let lambda = ["--by", "lambda", "--most", "2"];
    fails(&valid(&lambda), "--most", &["at most 1"]);
    fails(
        &valid(&["--seeds", "3", "--seed", "1"]),
        "--seed",
        &["cannot be used"],
    );
    let no_cluster = [
        "size",
        "--trace",
        path(&bare),
        "--target",
        "0.9",
        "--by",
        "lambda",
    ];
    run_fails(&no_cluster, "--by lambda", &["--slots or --nodes"]);
    let empty = folder.0.join("empty");
    std::fs::create_dir_all(&empty).expect("a folder");
    let empty = ["size", "--recording", path(&empty), "--target", "0.9"];
    run_fails(&empty, "empty", &["holds no recording"]);
}
