//! docs/reference/newer-fields.md has each field of a Job that is newer than the API types of shed. The fields are those
//! of the newest Kubernetes among the Go modules of this machine, which the local cluster is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fs};

use k8s_openapi::api::batch::v1::JobSpec;
use serde_json::{Map, Value, json};
use shed::api::unknown_fields;

const PAGE: &str = include_str!("../docs/reference/newer-fields.md");

/// The schemas of batch/v1 and the version of Kubernetes, if they are at hand.
fn openapi() -> Option<(String, Value)> {
    let modules = match env::var_os("GOMODCACHE") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME")?).join("go/pkg/mod"),
    };
    let entries = fs::read_dir(modules.join("k8s.io")).ok()?;
    let versions = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let version = name.strip_prefix("kubernetes@v")?;
        let numbers: Option<Vec<u32>> = version.split('.').map(|one| one.parse().ok()).collect();
        Some((numbers?, version.to_owned()))
    });
    let (_, newest) = versions.max()?;
    let file =
        format!("k8s.io/kubernetes@v{newest}/api/openapi-spec/v3/apis__batch__v1_openapi.json");
    let text = fs::read_to_string(modules.join(file)).ok()?;
    let whole: Value = serde_json::from_str(&text).ok()?;
    Some((newest, whole["components"]["schemas"].clone()))
}

/// An object with every field of a type, and the field of each path in it, such as `PodSpec.volumes`.
struct Sample<'s> {
    schemas: &'s Value,
    fields: BTreeMap<String, String>,
}

impl Sample<'_> {
    fn of_type(&mut self, reference: &str, path: &str) -> Value {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let schema = &self.schemas[name];
        match schema["properties"].as_object() {
            Some(properties) => {
                let properties = properties.clone();
                self.object(
                    name.rsplit('.').next().unwrap_or_default(),
                    &properties,
                    path,
                )
            }
            None if schema["type"] == "object" => json!({}),
            None if name.ends_with(".Time") => json!("2026-01-01T00:00:00Z"),
            None if name.ends_with(".IntOrString") => json!(1),
            None => json!("1"),
        }
    }

    fn object(&mut self, type_: &str, properties: &Map<String, Value>, path: &str) -> Value {
        let mut object = Map::new();
        for (name, schema) in properties {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            self.fields.insert(path.clone(), format!("{type_}.{name}"));
            object.insert(name.clone(), self.value(schema, &path));
        }
        Value::Object(object)
    }

    fn value(&mut self, schema: &Value, path: &str) -> Value {
        let reference = schema["$ref"].as_str();
        let reference = reference.or_else(|| schema["allOf"][0]["$ref"].as_str());
        if let Some(reference) = reference {
            return self.of_type(reference, path);
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" => json!([self.value(&schema["items"], &format!("{path}[0]"))]),
            "object" => json!({}),
            "integer" => json!(1),
            "boolean" => json!(true),
            _ => json!("1"),
        }
    }
}

/// The fields of the page, in its order.
fn rows() -> Vec<&'static str> {
    let lines = PAGE.lines().filter(|line| line.starts_with("| `"));
    lines.filter_map(|line| line.split('`').nth(1)).collect()
}

#[test]
fn the_page_has_each_field_that_is_newer_than_the_types() {
    let shown: BTreeSet<&str> = rows().into_iter().collect();
    assert!(shown.len() > 10, "{shown:?}");
    let Some((version, schemas)) = openapi() else {
        eprintln!("not compared: the Go module k8s.io/kubernetes is not on this machine");
        return;
    };
    assert!(PAGE.contains(&version), "the page is not about {version}");
    let mut sample = Sample {
        schemas: &schemas,
        fields: BTreeMap::new(),
    };
    let spec = sample.of_type("io.k8s.api.batch.v1.JobSpec", "");
    let (_, unknown) = unknown_fields::read::<JobSpec>(&spec).expect("the sample is a JobSpec");
    // A template has no ephemeral containers.
    let unknown = unknown
        .iter()
        .filter(|path| !path.contains("ephemeralContainers"));
    let newer: BTreeSet<&str> = unknown.map(|path| &*sample.fields[path]).collect();
    assert_eq!(shown, newer, "of Kubernetes {version}");
}
