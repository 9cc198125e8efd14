//! Fields that are there and that this version does not know: a newer operator wrote them, and may take
//! the job on again. They are kept at their places through every write. Pure.

use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_path_to_error::{Path, Track};

use crate::api::{DeadlineJobStatus, LEDGER_FORM, index_lists};
use crate::size;

/// Fields that identify an entry of a list: `index` of a task or a segment, `number` of an attempt,
/// `type` of a condition. A position does not identify an entry, because lists are sorted and lose
/// entries.
const NAMES: [&str; 3] = ["index", "number", "type"];

/// Fields that were passed over, with their places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unknown(Vec<(Vec<Step>, Value)>);

/// One step from the whole to a part of it.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// The entry of a list that has this value in this field.
    Entry(&'static str, Value),
}

/// A step of a path in a document, as a parser names it.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A field's name.
    Field(String),
    /// An entry's position in its list.
    Position(usize),
}

/// Decodes a part of an object. Also returns the fields that it ignored, as `template.spec.novel`.
///
/// # Errors
/// The field and its error, as a suffix to the object's name: `.onMiss: unknown variant …`.
pub fn read<T>(value: &Value) -> Result<(T, Vec<String>), String>
where
    T: for<'de> Deserialize<'de>,
{
    let (read, passed_over) = read_with_places(value)?;
    let names = passed_over.iter().map(|parts| words(parts));
    Ok((read, names.collect()))
}

/// The same with the places of the fields that were passed over.
pub fn read_with_places<T>(value: &Value) -> Result<(T, Vec<Vec<Part>>), String>
where
    T: for<'de> Deserialize<'de>,
{
    let (mut passed_over, mut track) = (Vec::new(), Track::new());
    let mut note = |path: serde_ignored::Path<'_>| passed_over.push(parts(&path));
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    let read = T::deserialize(serde_ignored::Deserializer::new(tracked, &mut note));
    match read {
        Ok(read) => Ok((read, passed_over)),
        Err(error) => Err(at(&track.path(), &error)),
    }
}

/// The merge patch (RFC 7386) that turns `from` into `to`, and does not change fields that neither
/// has.
pub fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let gone = from.keys().filter(|name| !to.contains_key(*name));
    let gone = gone.map(|name| (name.clone(), Value::Null));
    let changed = to
        .iter()
        .filter(|(name, value)| from.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| {
        let before = from.get(name).unwrap_or(&Value::Null);
        (name.clone(), difference(before, value))
    });
    gone.chain(changed).collect()
}

/// The field and its error, as a suffix to the object's name.
fn at(path: &Path, error: &serde_json::Error) -> String {
    match path.iter().len() {
        0 => format!(": {error}"),
        _ => format!(".{path}: {error}"),
    }
}

impl Unknown {
    /// Whether everything was understood.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Size that the fields add to the object, in bytes of JSON.
    pub fn bytes(&self) -> usize {
        let fields = self.0.iter().map(|(steps, value)| {
            let name = match steps.last() {
                Some(Step::Field(name)) => size::bytes(name),
                _ => 0,
            };
            name + size::bytes(value) + 2
        });
        fields.sum()
    }

    fn take(&mut self, whole: &Value, parts: &[Part]) {
        let mut here = whole;
        let mut steps = Vec::with_capacity(parts.len());
        for part in parts {
            let (step, next) = match part {
                Part::Field(name) => (Some(Step::Field(name.clone())), here.get(name)),
                Part::Position(position) => {
                    let entry = here.get(position);
                    (entry.and_then(name_of), entry)
                }
            };
            // An entry without a name could not be found again.
            let (Some(step), Some(next)) = (step, next) else {
                return;
            };
            steps.push(step);
            here = next;
        }
        self.0.push((steps, here.clone()));
    }

    /// Puts each field back to its place. A field whose place is gone is dropped, and existing
    /// fields stay.
    fn put_back(&self, whole: &mut Value) {
        for (steps, value) in &self.0 {
            let Some((Step::Field(name), way)) = steps.split_last() else {
                continue;
            };
            let place = way.iter().try_fold(&mut *whole, |here, step| match step {
                Step::Field(name) => here.get_mut(name),
                Step::Entry(key, name) => {
                    let entries = here.as_array_mut()?;
                    entries
                        .iter_mut()
                        .find(|entry| entry.get(key) == Some(name))
                }
            });
            if let Some(fields) = place.and_then(Value::as_object_mut) {
                fields.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
}

/// As `tasks[3].novel`.
pub fn words(parts: &[Part]) -> String {
    let words = parts.iter().map(|part| match part {
        Part::Field(name) => format!(".{name}"),
        Part::Position(position) => format!("[{position}]"),
    });
    words.collect::<String>().trim_start_matches('.').to_owned()
}

fn name_of(entry: &Value) -> Option<Step> {
    let mut names = NAMES.into_iter();
    names.find_map(|key| Some(Step::Entry(key, entry.get(key)?.clone())))
}

fn parts(path: &serde_ignored::Path<'_>) -> Vec<Part> {
    use serde_ignored::Path as At;
    let (parent, part) = match path {
        At::Root => return Vec::new(),
        At::Seq { parent, index } => (parent, Some(Part::Position(*index))),
        At::Map { parent, key } => (parent, Some(Part::Field(key.clone()))),
        At::Some { parent } | At::NewtypeStruct { parent } | At::NewtypeVariant { parent } => {
            (parent, None)
        }
    };
    let mut parts = parts(parent);
    parts.extend(part);
    parts
}

/// Of a ledger in a newer form only that is read: the rest may have values that make no sense here.
fn pass_over_newer_form(status: &mut Value) {
    let Some(ledger) = status.get_mut("ledger") else {
        return;
    };
    let form = ledger.get("form").and_then(Value::as_u64);
    if let Some(form) = form.filter(|&form| form > u64::from(LEDGER_FORM)) {
        *ledger = json!({"form": u32::try_from(form).unwrap_or(u32::MAX)});
    }
}

impl<'de> Deserialize<'de> for DeadlineJobStatus {
    fn deserialize<D>(from: D) -> Result<Self, D::Error>
    where
        D: Deserializer<'de>,
    {
        let mut value = Value::deserialize(from)?;
        pass_over_newer_form(&mut value);
        let mut unknown = Unknown::default();
        let mut note = |path: serde_ignored::Path<'_>| unknown.take(&value, &parts(&path));
        let mut track = Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&value, &mut track);
        // The derived one, as in `serialize`.
        match Self::deserialize(serde_ignored::Deserializer::new(tracked, &mut note)) {
            Ok(status) => {
                let mut status = Self { unknown, ..status };
                index_lists::complete(&mut status).map_err(D::Error::custom)?;
                Ok(status)
            }
            Err(error) => Err(D::Error::custom(at(&track.path(), &error))),
        }
    }
}

impl Serialize for DeadlineJobStatus {
    fn serialize<S>(&self, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        let mut status = self.clone();
        index_lists::shorten(&mut status).map_err(S::Error::custom)?;
        // The derived implementation, which differs from the one with `serde(remote)`.
        if self.unknown.is_empty() {
            return Self::serialize(&status, to);
        }
        let whole = Self::serialize(&status, serde_json::value::Serializer);
        let mut whole = whole.map_err(S::Error::custom)?;
        self.unknown.put_back(&mut whole);
        whole.serialize(to)
    }
}

#[cfg(test)]
mod tests;
