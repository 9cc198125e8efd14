//! An object against the structural schema of its CRD: the checks that the apiserver makes before it
//! runs CEL rules. Pure.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

/// Violations of `schema` by `value`, each with its field and the fix. `field` is the name of the value.
pub fn violations(schema: &Value, value: &Value, field: &str) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, field, &mut found);
    found
}

fn check(schema: &Value, value: &Value, field: &str, found: &mut Vec<String>) {
    let is_nullable = schema["nullable"] == Value::Bool(true);
    if value.is_null() && is_nullable {
        return;
    }
    if let Some(expected) = wrong_type(schema, value) {
        found.push(format!("{field}: {} is not {expected}", shown(value)));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
        let allowed = allowed.join(", ");
        found.push(format!(
            "{field}: unknown value {}: use one of {allowed}",
            shown(value)
        ));
    }
    match value {
        Value::Number(_) => check_number(schema, value, field, found),
        Value::String(text) => check_text(schema, text, field, found),
        Value::Array(items) => check_list(schema, items, field, found),
        Value::Object(fields) => check_fields(schema, fields, field, found),
        _ => {}
    }
}

/// The expected type in words, unless the value has it.
fn wrong_type(schema: &Value, value: &Value) -> Option<&'static str> {
    if schema["x-kubernetes-int-or-string"] == Value::Bool(true) {
        let fits = value.is_string() || is_whole(value);
        return (!fits).then_some("a whole number or a string");
    }
    let (fits, words) = match schema["type"].as_str()? {
        "object" => (value.is_object(), "a map of fields"),
        "array" => (value.is_array(), "a list"),
        "string" => (value.is_string(), "a string: put it in quotes"),
        "boolean" => (value.is_boolean(), "true or false"),
        "integer" => (is_whole(value), "a whole number"),
        "number" => (value.is_number(), "a number"),
        _ => return None,
    };
    (!fits).then_some(words)
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn check_number(schema: &Value, value: &Value, field: &str, found: &mut Vec<String>) {
    let number = value.as_f64().unwrap_or(f64::NAN);
    if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
        found.push(format!(
            "{field}: {value} is too small: use at least {least}"
        ));
    }
    if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
        found.push(format!("{field}: {value} is too large: use at most {most}"));
    }
}

fn check_text(schema: &Value, text: &str, field: &str, found: &mut Vec<String>) {
    let bounds = ["minLength", "maxLength"].map(|name| schema[name].as_u64());
    let length = text.chars().count() as u64;
    check_length(bounds, length, "characters", field, found);
    let Some(pattern) = schema["pattern"].as_str() else {
        return;
    };
    let matches = Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text));
    if !matches {
        let example = example(field);
        found.push(format!(
            "{field}: invalid value `{text}`: it must match {pattern}{example}"
        ));
    }
}

fn check_length(
    [least, most]: [Option<u64>; 2],
    length: u64,
    parts: &str,
    field: &str,
    found: &mut Vec<String>,
) {
    let mut report =
        |bound: String| found.push(format!("{field} has {length} {parts}: use {bound}"));
    if let Some(least) = least.filter(|least| length < *least) {
        report(format!("at least {least}"));
    }
    if let Some(most) = most.filter(|most| length > *most) {
        report(format!("at most {most}"));
    }
}

/// A valid value, for fields whose pattern is hard to read.
fn example(field: &str) -> &'static str {
    match field.rsplit('.').next() {
        Some("within" | "p50" | "p90") => ", e.g. 90s, 10m or 1h30m",
        _ => "",
    }
}

fn check_list(schema: &Value, items: &[Value], field: &str, found: &mut Vec<String>) {
    let bounds = ["minItems", "maxItems"].map(|name| schema[name].as_u64());
    check_length(bounds, items.len() as u64, "entries", field, found);
    for (position, item) in items.iter().enumerate() {
        check(
            &schema["items"],
            item,
            &format!("{field}[{position}]"),
            found,
        );
    }
}

fn check_fields(schema: &Value, fields: &Map<String, Value>, field: &str, found: &mut Vec<String>) {
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(Value::as_str);
    let missing = required.filter(|name| !fields.contains_key(*name));
    found.extend(missing.map(|name| format!("{field}.{name}: Required value: add it")));
    let known = schema["properties"].as_object();
    let of_any_name = schema.get("additionalProperties");
    let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true);
    for (name, value) in fields {
        let place = format!("{field}.{name}");
        match known.and_then(|known| known.get(name)).or(of_any_name) {
            Some(schema) => check(schema, value, &place, found),
            None if keeps_unknown || known.is_none() => {}
            None => found.push(unknown(&place, name, known)),
        }
    }
}

fn unknown(place: &str, name: &str, known: Option<&Map<String, Value>>) -> String {
    let names = known.into_iter().flat_map(Map::keys).map(String::as_str);
    match closest(name, names) {
        Some(close) => format!("{place}: unknown field: did you mean {close}?"),
        None => format!("{place}: unknown field: remove it"),
    }
}

/// The name that differs least from `name`, if it differs by at most a third of its characters.
pub fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let by_distance: BTreeMap<(usize, &str), &str> = names
        .map(|other| ((strsim::levenshtein(name, other), other), other))
        .collect();
    let ((least, _), other) = by_distance.into_iter().next()?;
    (least * 3 <= name.chars().count().max(3)).then_some(other)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map of fields".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => format!("`{}`", other.to_string().trim_matches('"')),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(schema: Value, value: Value) -> Vec<String> {
        violations(&schema, &value, "spec")
    }

    /// A schema with a field of each kind.
    fn schema() -> Value {
        json!({"type": "object", "required": ["tasks"], "properties": {
            "tasks": {"type": "integer", "minimum": 1.0, "maximum": 9.0},
            "share": {"type": "number"},
            "mode": {"type": "string", "enum": ["Safe", "None"]},
            "name": {"type": "string", "minLength": 2, "maxLength": 3},
            "within": {"type": "string", "pattern": "^[0-9]+s$"},
            "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "boolean"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "port": {"x-kubernetes-int-or-string": true},
            "gone": {"type": "string", "nullable": true},
        }})
    }

    #[track_caller]
    fn each_is_said(violations: impl IntoIterator<Item = (Value, &'static str)>) {
        for (value, expected) in violations {
            assert_eq!(said(schema(), value.clone()), [expected], "{value}");
        }
    }

    #[test]
    fn a_bound_of_a_number_names_its_field_and_the_fix() {
        each_is_said([
            (json!({}), "spec.tasks: Required value: add it"),
            (
                json!({"tasks": 0}),
                "spec.tasks: 0 is too small: use at least 1",
            ),
            (
                json!({"tasks": 10}),
                "spec.tasks: 10 is too large: use at most 9",
            ),
            (
                json!({"tasks": "4"}),
                "spec.tasks: `4` is not a whole number",
            ),
            (
                json!({"tasks": 1.5}),
                "spec.tasks: `1.5` is not a whole number",
            ),
            (
                json!({"tasks": 1, "share": "x"}),
                "spec.share: `x` is not a number",
            ),
        ]);
    }

    #[test]
    fn a_bound_of_a_string_names_its_field_and_the_fix() {
        each_is_said([
            (
                json!({"tasks": 1, "mode": "safe"}),
                "spec.mode: unknown value `safe`: use one of Safe, None",
            ),
            (
                json!({"tasks": 1, "name": "a"}),
                "spec.name has 1 characters: use at least 2",
            ),
            (
                json!({"tasks": 1, "name": "abcd"}),
                "spec.name has 4 characters: use at most 3",
            ),
            (
                json!({"tasks": 1, "name": 5}),
                "spec.name: `5` is not a string: put it in quotes",
            ),
            (
                json!({"tasks": 1, "within": "soon"}),
                "spec.within: invalid value `soon`: it must match ^[0-9]+s$, e.g. 90s, 10m or 1h30m",
            ),
        ]);
    }

    #[test]
    fn a_bound_of_a_list_or_a_map_names_its_field_and_the_fix() {
        each_is_said([
            (
                json!({"tasks": 1, "list": []}),
                "spec.list has 0 entries: use at least 1",
            ),
            (
                json!({"tasks": 1, "list": [1]}),
                "spec.list[0]: `1` is not true or false",
            ),
            (
                json!({"tasks": 1, "list": true}),
                "spec.list: `true` is not a list",
            ),
            (
                json!({"tasks": 1, "labels": {"a": 1}}),
                "spec.labels.a: `1` is not a string: put it in quotes",
            ),
            (
                json!({"tasks": 1, "port": true}),
                "spec.port: `true` is not a whole number or a string",
            ),
            (
                json!({"tasks": 1, "mod": "Safe"}),
                "spec.mod: unknown field: did you mean mode?",
            ),
            (
                json!({"tasks": 1, "elsewhere": 1}),
                "spec.elsewhere: unknown field: remove it",
            ),
        ]);
    }

    #[test]
    fn values_within_their_bounds_are_valid() {
        let good = json!({"tasks": 9, "share": 1, "list": [true], "port": "http", "gone": null});
        assert_eq!(said(schema(), good), [""; 0]);
    }

    #[test]
    fn what_is_not_described_is_not_judged() {
        assert_eq!(
            said(json!({"type": "object"}), json!({"any": [1]})),
            [""; 0]
        );
        let kept = json!({"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(said(kept, json!({"any": 1})), [""; 0]);
    }
}
