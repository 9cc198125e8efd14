//! `manifests/install.yaml` with another image and other settings.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_yaml_ng::Value;

/// The pod's annotation that changes with the image, whose name stays the same.
const IMAGE_ANNOTATION: &str = "shed.dev/e2e-image";

/// The manifests with this image and these variables of the operator.
pub fn adjusted(text: &str, image: &str, digest: &str, env: &[(&str, String)]) -> Result<String> {
    let mut adjusted = String::new();
    let mut deployments = 0;
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let mut object = Value::deserialize(document)?;
        if object["kind"] == "Deployment" {
            adjust(&mut object, image, digest, env)?;
            deployments += 1;
        }
        if !object.is_null() {
            // To kubectl, which reads YAML 1.1, the plain `off` of serde_yaml_ng is no text.
            adjusted.push_str("---\n");
            adjusted.push_str(&serde_json::to_string(&object)?);
            adjusted.push('\n');
        }
    }
    anyhow::ensure!(deployments == 1, "{deployments} Deployments, not one");
    Ok(adjusted)
}

fn adjust(deployment: &mut Value, image: &str, digest: &str, env: &[(&str, String)]) -> Result<()> {
    let template = &mut deployment["spec"]["template"];
    template["metadata"]["annotations"][IMAGE_ANNOTATION] = digest.into();
    let container = &mut template["spec"]["containers"][0];
    container["image"] = image.into();
    let variables = container["env"].as_sequence_mut();
    let variables = variables.context("the operator's container has no variables")?;
    let images = [("SHED_AGENT_IMAGE", image.to_owned())];
    for (name, value) in images.iter().chain(env) {
        variables.retain(|variable| variable["name"] != *name);
        let mut variable = serde_yaml_ng::Mapping::new();
        variable.insert("name".into(), (*name).into());
        variable.insert("value".into(), value.as_str().into());
        variables.push(Value::Mapping(variable));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deployment_has_the_image_and_the_settings() {
        let text = include_str!("../../manifests/install.yaml");
        let share = [("SHED_CAPACITY_SHARE", "0.333".to_owned())];
        let adjusted = adjusted(text, "localhost/shed:dev", "sum", &share).unwrap();
        let count = |words: &str| adjusted.matches(words).count();
        assert_eq!(count(r#""value":"localhost/shed:dev""#), 1);
        assert_eq!(count(r#""image":"localhost/shed:dev""#), 1);
        assert_eq!(count(r#""value":"0.333""#), 1);
        assert_eq!(count(r#""name":"SHED_CAPACITY_SHARE""#), 1);
        assert_eq!(count(r#""shed.dev/e2e-image":"sum""#), 1);
        assert_eq!(count(r#""value":"off""#), 1, "a text");
        let objects = text.lines().filter(|line| line.starts_with("kind: "));
        assert_eq!(count("---\n"), objects.count(), "no object is lost");
    }

    #[test]
    fn text_without_a_deployment_is_refused() {
        assert!(adjusted("kind: Namespace", "image", "sum", &[]).is_err());
    }
}
