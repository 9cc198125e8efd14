//! The text of the annotation `shed.dev/progress`. Pure.

use serde::de::DeserializeOwned;

use crate::api::ProgressSource;

/// Reads the text: `file`, or the content of a `DeadlineJob`'s spec.progress.
pub(super) fn read(text: &str) -> Result<ProgressSource, String> {
    let yaml = if text == "file" { "{file: {}}" } else { text };
    let fix = "use `file`, or a value such as `{httpGet: {port: 8080, path: /progress}}`";
    let wrong = |why: String| format!("invalid value `{text}`: {why}{fix}");
    let source: ProgressSource = object(yaml).map_err(wrong)?;
    match out_of_bounds(&source) {
        None => Ok(source),
        Some(bounds) => Err(wrong(format!("{bounds}; "))),
    }
}

/// The object of a YAML text, or why it is not one, as far as known. The apiserver would drop unknown keys without a word.
pub(super) fn object<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut unknown = None;
    let read = serde_saphyr::with_deserializer_from_str(text, |from| {
        serde_ignored::deserialize(from, |key| {
            // A question mark stands for an optional field.
            unknown = Some(key.to_string().replace(".?", ""));
        })
    });
    match (read, unknown) {
        (Ok(_), Some(key)) => Err(format!("unknown key `{key}`; ")),
        (read, _) => read.map_err(|_| String::new()),
    }
}

/// The bounds of the CRD's schema that a source is not within. A test holds the two equal.
fn out_of_bounds(source: &ProgressSource) -> Option<&'static str> {
    let (http, metric) = (source.http_get.as_ref(), source.metric.as_ref());
    let sources = [source.file.is_some(), http.is_some(), metric.is_some()];
    let http = http.map(|own| (own.port, own.path.as_str()));
    let page = metric.map(|own| (own.port, own.path.as_str()));
    let endpoints = || http.into_iter().chain(page);
    let mut names = metric
        .into_iter()
        .flat_map(|own| [Some(&own.name), own.total.as_ref()])
        .flatten();
    if sources.into_iter().filter(|&there| there).count() != 1 {
        Some("exactly one of file, httpGet and metric must be there")
    } else if !(1..=3600).contains(&source.period_seconds) {
        Some("periodSeconds must be from 1 to 3600")
    } else if endpoints().any(|(port, _)| !(1..=65_535).contains(&port)) {
        Some("port must be from 1 to 65535")
    } else if endpoints().any(|(_, path)| !is_path(path)) {
        Some("path must begin with `/` and have at most 256 characters without spaces")
    } else if names.any(|name| !is_metric(name)) {
        Some("name and total must be names of metrics")
    } else {
        None
    }
}

fn is_path(path: &str) -> bool {
    path.starts_with('/') && path.chars().count() <= 256 && !path.contains(char::is_whitespace)
}

fn is_metric(name: &str) -> bool {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "_:".contains(one);
    let begins = name.starts_with(|first: char| is_plain(first) && !first.is_ascii_digit());
    begins && name.len() <= 256 && name.chars().all(is_plain)
}
