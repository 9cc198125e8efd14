//! The krew manifest of a release against the fields that krew documents and requires.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const PLATFORMS: [&str; 4] = ["darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64"];

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn fill(version: &str, base: &str, archives: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../krew/fill.sh");
    let output = Command::new(script)
        .args([version, base])
        .arg(archives)
        .output();
    output.unwrap()
}

fn names(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_release_has_every_field_that_krew_requires_and_no_other() {
    let archives = folder("krew");
    for platform in PLATFORMS {
        fs::write(
            archives.join(format!("kubectl-shed-{platform}.tar.gz")),
            platform,
        )
        .unwrap();
    }
    let output = fill("v1.2.3", "https://example.com/shed/", &archives);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && !text.contains('@') && !text.contains('#'),
        "{text}"
    );
    let plugin: Value = serde_yaml_ng::from_str(&text).unwrap();
    assert_eq!(
        names(&plugin),
        ["apiVersion", "kind", "metadata", "spec"].into()
    );
    assert_eq!(
        plugin["apiVersion"],
        "krew.googlecontainertools.github.com/v1alpha2"
    );
    assert_eq!(
        (&plugin["kind"], &plugin["metadata"]["name"]),
        (&"Plugin".into(), &"shed".into())
    );
    let spec = &plugin["spec"];
    let known = [
        "caveats",
        "description",
        "homepage",
        "platforms",
        "shortDescription",
        "version",
    ];
    assert_eq!(names(spec), known.into());
    assert_eq!(spec["version"], "v1.2.3");
    let short = spec["shortDescription"].as_str().unwrap();
    assert!(!short.is_empty() && !short.contains('\n') && !short.ends_with('.'));
    assert_eq!(platforms(spec), PLATFORMS.map(str::to_owned).into());
}

/// The platforms of a manifest, each with the sum of its own archive.
fn platforms(spec: &Value) -> BTreeSet<String> {
    let platforms = spec["platforms"].as_array().unwrap();
    let mut seen = BTreeSet::new();
    let mut sums = BTreeSet::new();
    for platform in platforms {
        assert_eq!(names(platform), ["bin", "selector", "sha256", "uri"].into());
        assert_eq!(platform["bin"], "kubectl-shed");
        let labels = &platform["selector"]["matchLabels"];
        assert_eq!(names(labels), ["arch", "os"].into());
        let name = format!(
            "{}-{}",
            labels["os"].as_str().unwrap(),
            labels["arch"].as_str().unwrap()
        );
        let uri = format!("https://example.com/shed/kubectl-shed-{name}.tar.gz");
        assert_eq!(platform["uri"], uri.as_str());
        let sum = platform["sha256"].as_str().unwrap();
        assert!(
            sum.len() == 64 && sum.bytes().all(|one| b"0123456789abcdef".contains(&one)),
            "{sum}"
        );
        sums.insert(sum.to_owned());
        seen.insert(name);
    }
    assert_eq!(sums.len(), seen.len(), "each archive has its own sum");
    seen
}

#[test]
fn a_release_offers_only_the_platforms_that_were_built() {
    let archives = folder("krew-one");
    let archive = archives.join("kubectl-shed-linux-amd64.tar.gz");
    fs::write(archive, "linux").unwrap();
    let base = "https://example.com/shed";
    let text = String::from_utf8(fill("1.2.3", base, &archives).stdout).unwrap();
    let plugin: Value = serde_yaml_ng::from_str(&text).unwrap();
    assert_eq!(
        platforms(&plugin["spec"]),
        ["linux-amd64".to_owned()].into()
    );
    fs::write(archives.join("kubectl-shed-x86-linux.tar.gz"), "x").unwrap();
    let refused = fill("1.2.3", base, &archives);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.stdout.is_empty() && said.contains("names no platform of Go"),
        "{said}"
    );
}

#[test]
fn a_release_without_archive_or_valid_version_is_refused() {
    let archives = folder("krew-without");
    for (version, base, words) in [
        (
            "1.2.3",
            "https://example.com",
            "has no kubectl-shed-OS-ARCH.tar.gz: build the plugin first",
        ),
        ("one", "https://example.com", "VERSION one is not a version"),
        (
            "1.2.3",
            "http://example.com",
            "BASE_URL http://example.com is not an https address",
        ),
    ] {
        let output = fill(version, base, &archives);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && output.stdout.is_empty() && said.contains(words),
            "{said}"
        );
    }
}
