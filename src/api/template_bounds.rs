//! Bounds of a template in the schema. A value beyond them cannot fit into a specification, so the
//! apiserver refuses it and names the field. They refuse nothing that shed would accept.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::size::SPEC_MAX;

/// An argument takes two quotes and a comma.
const STRINGS_MAX: usize = SPEC_MAX / 3;
/// A variable takes at least `{"name":"A"},`.
const VARIABLES_MAX: usize = SPEC_MAX / 13;

/// The schema of `spec.template`.
pub(super) fn template(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<PodTemplateSpec>();
    for containers in ["containers", "initContainers"] {
        let container = format!("/properties/spec/properties/{containers}/items/properties");
        for (list, most) in [
            ("args", STRINGS_MAX),
            ("command", STRINGS_MAX),
            ("env", VARIABLES_MAX),
        ] {
            set(
                &mut schema,
                &format!("{container}/{list}"),
                "maxItems",
                most,
            );
        }
        for text in ["args/items", "command/items", "env/items/properties/value"] {
            let text = format!("{container}/{text}");
            set(&mut schema, &text, "maxLength", SPEC_MAX);
        }
    }
    schema
}

/// If Kubernetes' own schema changes, a test reports a bound whose field is gone.
fn set(schema: &mut Schema, pointer: &str, bound: &str, most: usize) {
    let place = schema.pointer_mut(pointer).and_then(Value::as_object_mut);
    if let Some(place) = place {
        place.insert(bound.to_owned(), json!(most));
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;

    use super::*;
    use crate::api::DeadlineJob;

    #[test]
    fn every_bound_of_the_template_is_in_the_schema() {
        let crd = serde_json::to_value(DeadlineJob::crd()).unwrap();
        let text = crd["spec"]["versions"][0]["schema"].to_string();
        let count = |bound: &str, most: usize| text.matches(&format!("\"{bound}\":{most}")).count();
        assert_eq!(count("maxItems", STRINGS_MAX), 4);
        assert_eq!(count("maxItems", VARIABLES_MAX), 2);
        assert_eq!(count("maxLength", SPEC_MAX), 6);
    }
}
