//! Texts of the core's rules for the schema, because the core does not depend on schemas.

use schemars::{Schema, SchemaGenerator, json_schema};

fn one_of(words: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": words})
}

pub(super) fn idempotency(_: &mut SchemaGenerator) -> Schema {
    one_of(&["Safe", "Fenced", "None"])
}

pub(super) fn preemption(_: &mut SchemaGenerator) -> Schema {
    one_of(&["Never", "WhenCheckpointed"])
}

pub(super) fn on_miss(_: &mut SchemaGenerator) -> Schema {
    one_of(&["Fail", "Continue"])
}

pub(super) fn speculation_mode(_: &mut SchemaGenerator) -> Schema {
    one_of(&["Enabled", "Observe", "Disabled"])
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use shed_core::snapshot::{Idempotency, OnMiss, Preemption, SpeculationMode};

    use super::*;

    /// The names of the type's values: serde lists all of them in its error about an unknown value.
    fn of_core<T: DeserializeOwned + std::fmt::Debug>() -> Vec<String> {
        let error = serde_json::from_str::<T>("\"\"").unwrap_err().to_string();
        let named = error.split('`').skip(3).step_by(2);
        named.map(str::to_owned).collect()
    }

    fn of_schema(schema: fn(&mut SchemaGenerator) -> Schema) -> Vec<String> {
        let schema = schema(&mut SchemaGenerator::default());
        serde_json::from_value(schema.get("enum").unwrap().clone()).unwrap()
    }

    #[test]
    fn the_schema_has_the_words_of_the_core() {
        assert_eq!(of_schema(idempotency), of_core::<Idempotency>());
        assert_eq!(of_schema(preemption), of_core::<Preemption>());
        assert_eq!(of_schema(on_miss), of_core::<OnMiss>());
        assert_eq!(of_schema(speculation_mode), of_core::<SpeculationMode>());
    }
}
