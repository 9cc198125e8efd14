//! Faults named by file, line and field.

use crate::common::{Folder, TINY, gzip, path, run_fails};

#[test]
fn what_is_wrong_with_a_trace_is_said_with_file_line_and_field() {
    let folder = Folder::new("traces");
    let header = "job_id,arrival_s,task_id,duration_s,deps\n";
    for (name, rows, what) in [
        (
            "columns.csv",
            "job_id,arrival_s,task_id\na,0,0\n",
            &["columns.csv:1", "duration_s"][..],
        ),
        (
            "short.csv",
            "a,0,0\n",
            &["short.csv:2", "`duration_s`", "3 columns"],
        ),
        (
            "negative.csv",
            "a,0,0,5,\na,0,1,-5,\n",
            &["negative.csv:3", "`duration_s`", "`-5`"],
        ),
        (
            "word.csv",
            "a,soon,0,5,\n",
            &["word.csv:2", "`arrival_s`", "`soon`", "number"],
        ),
        ("nan.csv", "a,0,0,NaN,\n", &["nan.csv:2", "`duration_s`"]),
        (
            "twice.csv",
            "a,0,7,5,\nb,0,7,5,\na,0,7,6,\n",
            &["twice.csv:4", "`task_id`", "line 2"],
        ),
        (
            "parent.csv",
            "a,0,0,5,9\n",
            &["parent.csv:2", "`deps`", "`9`"],
        ),
        (
            "circle.csv",
            "a,0,0,5,1\na,0,1,5,0\n",
            &["circle.csv:2", "`deps`", "circle"],
        ),
        (
            "arrivals.csv",
            "a,0,0,5,\na,1,1,5,\n",
            &["arrivals.csv:3", "line 2"],
        ),
        (
            "early.csv",
            "a,-1,0,5,\n",
            &["early.csv:2", "`arrival_s`", "`-1`"],
        ),
        (
            "unnamed.csv",
            "a,0,,5,\n",
            &["unnamed.csv:2", "`task_id`", "empty"],
        ),
        (
            "late.csv",
            "job_id,arrival_s,task_id,duration_s,deadline_s\na,0,0,5,never\n",
            &["late.csv:2", "`deadline_s`", "`never`"],
        ),
        (
            "unit.csv",
            "job_id,arrival_s,task_id,duration_s,deadline\na,0,0,5,9\n",
            &["unit.csv:1", "`deadline`", "`deadline_s`"],
        ),
        (
            "expected.csv",
            "job_id,arrival_s,task_id,duration_s,expected_s\na,0,0,5,0\n",
            &["expected.csv:2", "`expected_s`", "`0`"],
        ),
        (
            "cores.csv",
            "job_id,arrival_s,task_id,duration_s,cpu\na,0,0,5,two\n",
            &["cores.csv:2", "`cpu`", "`two`", "number"],
        ),
        ("nothing.csv", "", &["nothing.csv", "no job"]),
        ("foreign.csv", "x,y\n1,2\n", &["foreign.csv:1", "x, y"]),
    ] {
        let has_header = rows.starts_with("job_id") || rows.starts_with("x,");
        let text = format!("{}{rows}", if has_header { "" } else { header });
        let file = folder.file(name, text.as_bytes());
        run_fails(&["run", "--trace", path(&file), "--slots", "1"], name, what);
    }
}

#[test]
fn a_file_that_is_cut_off_or_absent_or_empty_is_said_to_be() {
    let folder = Folder::new("files");
    let whole = gzip(TINY.repeat(200).as_bytes());
    let cut = folder.file("cut.csv.gz", &whole[..whole.len() / 2]);
    run_fails(
        &["run", "--trace", path(&cut), "--slots", "1"],
        "cut.csv.gz",
        &["cut off"],
    );
    let empty = folder.file("empty.csv", b"");
    run_fails(
        &["run", "--trace", path(&empty), "--slots", "1"],
        "empty.csv",
        &[],
    );
    let absent = folder.0.join("absent.csv");
    run_fails(
        &["run", "--trace", path(&absent), "--slots", "1"],
        "absent.csv",
        &["No such"],
    );
    let swf = folder.file(
        "bad.swf",
        b"; comment\n1 0 0 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 x\n",
    );
    run_fails(
        &["run", "--trace", path(&swf), "--slots", "1"],
        "bad.swf:3",
        &["`submit time`"],
    );
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let folder = Folder::new("flags");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let small = folder.file("nodes.csv", b"name,cpu,memory_mib\nn,1,1000\n");
    let base = ["run", "--trace", path(&trace)];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    run_fails(&with(&["--slots", "0"]), "", &["no slots"]);
    run_fails(
        &with(&["--slots", "1", "--policy", "no-such"]),
        "",
        &["`no-such`", "hadoop-ns"],
    );
    run_fails(
        &with(&["--slots", "1", "--policy", "shed-plus{xi=7}"]),
        "",
        &["xi=7"],
    );
    run_fails(
        &with(&["--slots", "1", "--attempt-model", "x"]),
        "",
        &["unknown model `x`"],
    );
    run_fails(&with(&["--slots", "1", "--load", "-1"]), "", &["--load"]);
    run_fails(
        &with(&["--slots", "1", "--order", "lifo"]),
        "",
        &["`lifo`", "lst, edf"],
    );
    run_fails(&with(&[]), "", &["--slots"]);
    run_fails(
        &with(&["--slots", "2", "--slow-slots", "0.5", "--job-masters"]),
        "",
        &["--job-masters needs --slots"],
    );
    let nodes = path(&small).to_owned();
    let args = [&base[..], &["--nodes", &nodes]].concat();
    run_fails(&args, "", &["job `b`", "2000 milli-cores"]);
}

#[test]
fn a_demand_that_no_node_holds_is_shown_in_the_trace() {
    let folder = Folder::new("demand");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let thin = folder.file("thin.csv", b"name,cpu,memory_mib\nn,4,150\n");
    let out = folder.0.join("out.jsonl");
    let flags = ["--trace", path(&trace), "--nodes", path(&thin)];
    let what = [
        "tiny.csv:5",
        "`memory_mib`",
        "job `b`",
        "200 MiB",
        "150 MiB",
    ];
    run_fails(&[&["run"], &flags[..]].concat(), "", &what);
    // A sweep reports it before it opens its output.
    let args = [&["sweep", "--out", path(&out)], &flags[..]].concat();
    run_fails(&args, "", &what);
    assert!(!out.exists());
    let empty = folder.file("empty-nodes.csv", b"name,cpu,memory_mib\n");
    let args = ["run", "--trace", path(&trace), "--nodes", path(&empty)];
    run_fails(&args, "empty-nodes.csv", &["no node"]);
}

#[test]
fn faults_of_cluster_files_are_reported_with_line_and_field() {
    let folder = Folder::new("cluster");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let good = folder.file("nodes.csv", b"name,cpu,memory_mib\nn,4,1000\n");
    for (name, text, what) in [
        (
            "columns.csv",
            "name,cpu\nn,1\n",
            &["columns.csv:1", "memory_mib"][..],
        ),
        (
            "cores.csv",
            "name,cpu,memory_mib\nn,x,1\n",
            &["cores.csv:2", "`cpu`", "`x`"],
        ),
        (
            "twice.csv",
            "name,cpu,memory_mib\nn,1,1\nn,1,1\n",
            &["twice.csv:3", "`name`", "twice"],
        ),
    ] {
        let nodes = folder.file(name, text.as_bytes());
        let args = ["run", "--trace", path(&trace), "--nodes", path(&nodes)];
        run_fails(&args, name, what);
    }
    for (flag, name, text, what) in [
        (
            "--node-changes",
            "lost.csv",
            "node,at_s,factor\nn,1,0\nm,2,1\n",
            &["lost.csv:3", "`node`", "`m`"][..],
        ),
        (
            "--slowdown",
            "slow.csv",
            "suite,test,vm_sku,lifespan,region,quantile,slowdown_vs_median\na,b,c,d,e,2,1\n",
            &["slow.csv:2", "`quantile`", "`2`", "from 0 to 1"],
        ),
    ] {
        let file = folder.file(name, text.as_bytes());
        let args = [
            "run",
            "--trace",
            path(&trace),
            "--nodes",
            path(&good),
            flag,
            path(&file),
        ];
        run_fails(&args, name, what);
    }
}

#[test]
fn a_run_that_is_refused_leaves_no_file() {
    let folder = Folder::new("nothing-left");
    let trace = folder.file("tiny.csv", TINY.as_bytes());
    let jobs = folder.0.join("jobs.csv");
    let args = [
        "run",
        "--trace",
        path(&trace),
        "--slots",
        "0",
        "--jobs",
        path(&jobs),
    ];
    run_fails(
        &args,
        "",
        &["--slots", "no slots", "at least one is expected"],
    );
    let args = ["run", "--trace", path(&trace), "--slots", "1"];
    let same = ["--jobs", path(&jobs), "--attempts", path(&jobs)];
    run_fails(&[&args[..], &same].concat(), "", &["different files"]);
    let left = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(left, 1, "only the trace is there");
}
