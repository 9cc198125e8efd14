//! The objects of a manifest: YAML or JSON, one document or several, `List`s included. Pure.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its number among the documents of the file, from 1.
    pub number: usize,
    pub object: Value,
}

impl Document {
    /// `DeadlineJob nightly`, or the number if it has no kind or no name.
    pub fn title(&self) -> String {
        let kind = text(&self.object, "/kind");
        let name = text(&self.object, "/metadata/name");
        let name = name.or_else(|| text(&self.object, "/metadata/generateName"));
        match (kind, name) {
            (Some(kind), Some(name)) => format!("{kind} {name}"),
            (Some(kind), None) => format!("{kind} in document {}", self.number),
            (None, _) => format!("document {}", self.number),
        }
    }

    /// API version and kind, empty where absent.
    pub fn kind(&self) -> (&str, &str) {
        let field = |place| text(&self.object, place).unwrap_or_default();
        (field("/apiVersion"), field("/kind"))
    }
}

/// The text at a JSON pointer.
pub fn text<'a>(object: &'a Value, place: &str) -> Option<&'a str> {
    object.pointer(place).and_then(Value::as_str)
}

/// The objects of a manifest. Empty documents count, and yield no object.
pub fn parse(text: &str) -> anyhow::Result<Vec<Document>> {
    let mut found = Vec::new();
    for (position, document) in serde_yaml_ng::Deserializer::from_str(text).enumerate() {
        let number = position + 1;
        let object = Value::deserialize(document)
            .with_context(|| format!("document {number} is not valid YAML"))?;
        add(number, object, &mut found)?;
    }
    Ok(found)
}

fn add(number: usize, object: Value, found: &mut Vec<Document>) -> anyhow::Result<()> {
    match object {
        Value::Null => Ok(()),
        Value::Object(mut fields) if fields.get("kind") == Some(&Value::from("List")) => {
            let items = match fields.remove("items") {
                Some(Value::Array(items)) => items,
                _ => anyhow::bail!(
                    "document {number}: items of the List: Required value: add a list"
                ),
            };
            let mut items = items.into_iter();
            items.try_for_each(|item| add(number, item, found))
        }
        Value::Object(_) => {
            found.push(Document { number, object });
            Ok(())
        }
        _ => anyhow::bail!("document {number} is not an object: add apiVersion, kind and metadata"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Vec<String> {
        let documents = parse(text).unwrap();
        documents.iter().map(Document::title).collect()
    }

    #[test]
    fn several_documents_and_lists_are_read() {
        let text = "\
            ---\nkind: Job\nmetadata: {name: a}\n---\n# empty\n---\n\
            kind: List\nitems: [{kind: CronJob, metadata: {generateName: b-}}, {kind: Job}]\n---\n{}\n";
        assert_eq!(
            titles(text),
            ["Job a", "CronJob b-", "Job in document 3", "document 4"]
        );
        assert_eq!(
            titles("{\"kind\": \"Job\", \"metadata\": {\"name\": \"j\"}}"),
            ["Job j"]
        );
        assert_eq!(titles(""), [""; 0]);
    }

    #[test]
    fn what_is_no_object_is_named_by_its_number() {
        for (text, words) in [
            ("kind: Job\n---\n- a\n", "document 2 is not an object"),
            ("kind: Job\n---\nkind: [\n", "document 2 is not valid YAML"),
            ("kind: List\n", "document 1: items of the List"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
