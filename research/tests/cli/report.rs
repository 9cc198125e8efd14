//! The report: well-formed, self-contained, with the results of the runs, and displayed by a
//! browser.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{Folder, path, run_fails, succeeds};

const POLICIES: [&str; 3] = ["hadoop-ns", "hadoop-s", "shed-plus"];

fn shared_flags(policies: &str) -> Vec<String> {
    let text = format!(
        "--trace setup:A{{jobs=12}} --slots 60 --deadline-factor 1.5 --resume offset \
         --launch-overhead 5% --first-report 5% --policy {policies}"
    );
    text.split(' ').map(str::to_owned).collect()
}

fn with(flags: &[String], more: &[&str]) -> String {
    let (first, rest) = more.split_first().expect("a sub-command");
    let flags = flags.iter().map(String::as_str);
    let args: Vec<&str> = std::iter::once(*first)
        .chain(flags)
        .chain(rest.iter().copied())
        .collect();
    succeeds(&args)
}

/// Every kind of input that a report takes: made once, and then copied.
fn inputs(folder: &Folder) -> Vec<PathBuf> {
    static MADE: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = Folder::new("report-inputs");
        let files = make_inputs(&folder).into_iter().map(|file| {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&file).unwrap())
        });
        files.collect()
    });
    made.iter()
        .map(|(name, bytes)| folder.file(name, bytes))
        .collect()
}

fn make_inputs(folder: &Folder) -> Vec<PathBuf> {
    let at = |name: &str| folder.0.join(name);
    let sweep = at("sweep.jsonl");
    let all = shared_flags(&POLICIES.join(","));
    with(
        &all,
        &[
            "sweep",
            "--out",
            path(&sweep),
            "--load",
            "0.5,0.8",
            "--seed",
            "0..3",
        ],
    );
    let compared = with(
        &all,
        &[
            "compare", "--load", "0.8", "--seed", "0..3", "--format", "csv",
        ],
    );
    let mut files = vec![sweep, folder.file("compared.csv", compared.as_bytes())];
    for policy in ["hadoop-ns", "shed-plus"] {
        let jobs = at(&format!("jobs-{policy}.csv.gz"));
        let attempts = at(&format!("attempts-{policy}.jsonl"));
        let details = ["--jobs", path(&jobs), "--attempts", path(&attempts)];
        let args = [&["run", "--load", "0.8"], &details[..]].concat();
        with(&shared_flags(policy), &args);
        files.extend([jobs, attempts]);
    }
    files
}

fn report(folder: &Folder, files: &[PathBuf]) -> PathBuf {
    let out = folder.0.join("report.html");
    let mut args = vec!["report", "--out", path(&out), "--title", "A & <B>"];
    args.extend(files.iter().map(|file| path(file)));
    succeeds(&args);
    out
}

fn parse(html: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let parsed = roxmltree::Document::parse_with_options(html, options);
    parsed.unwrap_or_else(|error| panic!("not well-formed: {error}"))
}

fn text_of(node: roxmltree::Node<'_, '_>) -> String {
    let texts = node.descendants().filter(roxmltree::Node::is_text);
    texts.filter_map(|text| text.text()).collect()
}

#[test]
fn a_report_is_self_contained_and_names_every_policy() {
    let folder = Folder::new("report");
    let html = std::fs::read_to_string(report(&folder, &inputs(&folder))).unwrap();
    let page = parse(&html);
    assert!(html.contains("<title>A &amp; &lt;B&gt;</title>"));

    let elements: Vec<_> = page
        .descendants()
        .filter(roxmltree::Node::is_element)
        .collect();
    for element in &elements {
        let name = element.tag_name().name();
        assert!(
            !["script", "link", "img", "iframe", "object"].contains(&name),
            "{name}"
        );
        for attribute in element.attributes() {
            assert!(!["src", "href", "srcset", "data"].contains(&attribute.name()));
            assert!(!attribute.value().contains("//"), "{}", attribute.value());
        }
    }
    let without_names = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http:", "https:", "url(", "@import"] {
        assert!(!without_names.contains(outside), "{outside}");
    }

    let figures: Vec<_> = elements
        .iter()
        .filter(|e| e.has_tag_name("figure"))
        .collect();
    // Deadlines, cost, flow times, the attempts of one job under two policies.
    assert_eq!(figures.len(), 5);
    for policy in POLICIES {
        for figure in &figures[..2] {
            let texts = figure
                .descendants()
                .filter(|node| node.tag_name().name() == "text");
            let named = texts
                .map(text_of)
                .filter(|text| text.contains(policy))
                .count();
            assert!(named > 0, "{policy}");
        }
    }
    let words = figures
        .iter()
        .map(|figure| text_of(**figure))
        .collect::<Vec<_>>();
    for (figure, expected) in words.iter().zip([
        "deadlines met (%)",
        "machine time (h)",
        "flow time (s)",
        "time since the job's arrival (s)",
        "deadline",
    ]) {
        assert!(figure.contains(expected), "{expected} is not in {figure}");
    }
}

#[test]
fn the_table_has_the_means_of_the_runs() {
    let folder = Folder::new("report-table");
    let files = inputs(&folder);
    let html = std::fs::read_to_string(report(&folder, &files)).unwrap();
    let mut met: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    let mut sums: BTreeMap<(String, String), [f64; 5]> = BTreeMap::new();
    for line in std::fs::read_to_string(&files[0]).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let policy = row["policy"].as_str().unwrap();
        let policy = policy.split('{').next().unwrap().to_owned();
        let key = (policy, row["load"].to_string());
        let fields = [
            "clones",
            "tasks",
            "clone_wins",
            "machine_seconds_wasted",
            "machine_seconds",
        ];
        for (sum, field) in sums.entry(key.clone()).or_default().iter_mut().zip(fields) {
            *sum += row[field].as_f64().unwrap();
        }
        let values = met.entry(key).or_default();
        values.push(100.0 * row["pocd"].as_f64().unwrap());
    }
    assert_eq!(met.len(), 6);
    let page = parse(&html);
    let rows = page.descendants().filter(|node| node.has_tag_name("tr"));
    let rows: Vec<Vec<String>> = rows
        .map(|row| {
            row.children()
                .filter(|c| c.is_element())
                .map(text_of)
                .collect()
        })
        .collect();
    let heads = rows.iter().find(|row| row[0] == "policy").unwrap();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    for ((policy, load), [clones, tasks, wins, lost, all]) in sums {
        let row = rows.iter().find(|row| row[0] == policy && row[1] == load);
        let row = row.unwrap();
        assert_eq!(row[at("clones per task")], format!("{:.2}", clones / tasks));
        let per_win = match wins {
            0.0 => "–".to_owned(),
            wins => format!("{:.1}", clones / wins),
        };
        assert_eq!(row[at("clones per win")], per_win);
        assert_eq!(row[at("not won (%)")], format!("{:.1}", 100.0 * lost / all));
    }
    for ((policy, load), values) in met {
        let mean = values.iter().sum::<f64>() / 3.0;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2.0;
        // Student's t for two degrees of freedom.
        let half = 4.303 * (variance / 3.0).sqrt();
        let expected = format!("{mean:.1} ± {half:.1}");
        let row = rows.iter().find(|row| row[0] == policy && row[1] == load);
        assert_eq!(row.map(|row| (&*row[2], &*row[3])), Some(("3", &*expected)));
    }
}

#[test]
fn what_is_no_result_is_refused_with_file_line_and_field() {
    let folder = Folder::new("report-faults");
    let out = folder.0.join("report.html");
    let rows = succeeds(&[
        "run",
        "--trace",
        "setup:A{jobs=9}",
        "--slots",
        "138",
        "--format",
        "json",
    ]);
    let other = rows.replace("\"digest\":\"", "\"digest\":\"f");
    let worded = rows.replace("\"machine_seconds\":", "\"machine_seconds\":\"x\",\"was\":");
    for (name, text, what) in [
        ("empty.jsonl", String::new(), &["empty"][..]),
        (
            "foreign.csv",
            "x,y\n1,2\n".into(),
            &["foreign.csv:2", "machine_seconds", "x, y"],
        ),
        (
            "cut.jsonl",
            format!("{rows}{{\"policy\":\"s"),
            &["cut.jsonl:2", "JSON object"],
        ),
        (
            "word.jsonl",
            worded,
            &["word.jsonl:1", "`machine_seconds`", "not a finite number"],
        ),
        (
            "twice.jsonl",
            format!("{rows}{other}"),
            &["twice.jsonl:2", "`seed`", "twice"],
        ),
    ] {
        let file = folder.file(name, text.as_bytes());
        run_fails(&["report", "--out", path(&out), path(&file)], name, what);
        assert!(!out.exists(), "{name}: nothing half-written");
    }
    let absent = folder.0.join("absent.jsonl");
    run_fails(
        &["report", "--out", path(&out), path(&absent)],
        "absent.jsonl",
        &["No such"],
    );
    let good = folder.file("good.jsonl", format!("{rows}{rows}").as_bytes());
    let args = ["report", "--out", path(&out), "--job", "j1", path(&good)];
    run_fails(&args, "", &["--job", "--attempts"]);
    // The same row twice is one run.
    succeeds(&["report", "--out", path(&out), path(&good)]);
    assert!(
        std::fs::read_to_string(&out)
            .unwrap()
            .contains("<p>1 run, 1 policy, 1 workload;")
    );
}

/// `SHED_CHROMIUM`, or a Chromium on the path.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("SHED_CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let files = names
        .iter()
        .flat_map(|name| folders.iter().map(move |f| f.join(name)));
    files.into_iter().find(|file| file.is_file())
}

fn open_in(chromium: &Path, profile: &Path, page: &Path, how: &str) -> std::process::Output {
    Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            how,
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("Chromium starts")
}

#[test]
fn a_browser_shows_the_report_and_prints_it() {
    let Some(chromium) = chromium() else {
        eprintln!("left out: there is no Chromium (SHED_CHROMIUM names one)");
        return;
    };
    let folder = Folder::new("report-browser");
    let page = report(&folder, &inputs(&folder));
    let profile = folder.0.join("profile");
    let shown = open_in(&chromium, &profile, &page, "--dump-dom");
    let dom = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(
        dom.matches("<svg").count(),
        5,
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
    for policy in POLICIES {
        assert!(dom.contains(policy), "{policy}");
    }
    let pdf = folder.0.join("report.pdf");
    let printed = open_in(
        &chromium,
        &profile,
        &page,
        &format!("--print-to-pdf={}", pdf.display()),
    );
    let message = String::from_utf8_lossy(&printed.stderr).into_owned();
    let bytes = std::fs::read(&pdf).unwrap_or_else(|error| panic!("{error}: {message}"));
    assert!(bytes.starts_with(b"%PDF"), "{message}");
}
