//! The format of floats: values that JSON has no numbers for are written by name.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NAN: &str = "NaN";
const INFINITY: &str = "inf";
const NEG_INFINITY: &str = "-inf";

/// Writes a finite float as a number, any other by name.
pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else if value.is_nan() {
        serializer.serialize_str(NAN)
    } else if *value > 0.0 {
        serializer.serialize_str(INFINITY)
    } else {
        serializer.serialize_str(NEG_INFINITY)
    }
}

/// Reads what [`serialize`] wrote.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(FloatVisitor)
}

struct FloatVisitor;

impl Visitor<'_> for FloatVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number, `{NAN}`, `{INFINITY}` or `{NEG_INFINITY}`")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<f64, E> {
        match name {
            NAN => Ok(f64::NAN),
            INFINITY => Ok(f64::INFINITY),
            NEG_INFINITY => Ok(f64::NEG_INFINITY),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(name), &self)),
        }
    }
}

/// The same for a float that may be absent.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Float(#[serde(with = "super")] f64);

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Float).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        let float = Option::<Float>::deserialize(deserializer)?;
        Ok(float.map(|Float(value)| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Pair {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super::option")]
        other: Option<f64>,
    }

    fn there_and_back(one: f64, other: Option<f64>) -> (String, Pair) {
        let text = serde_json::to_string(&Pair { one, other }).unwrap();
        let read = serde_json::from_str(&text).unwrap();
        (text, read)
    }

    #[test]
    fn floats_that_json_has_no_numbers_for_are_written_by_name() {
        let (text, read) = there_and_back(f64::NEG_INFINITY, Some(f64::NAN));
        assert_eq!(text, r#"{"one":"-inf","other":"NaN"}"#);
        assert_eq!(read.one, f64::NEG_INFINITY);
        assert!(read.other.is_some_and(f64::is_nan));
        let (text, read) = there_and_back(f64::INFINITY, None);
        assert_eq!(text, r#"{"one":"inf","other":null}"#);
        assert_eq!((read.one, read.other), (f64::INFINITY, None));
    }

    #[test]
    fn finite_floats_stay_numbers_and_zero_keeps_its_sign() {
        let (text, read) = there_and_back(-0.0, Some(0.1));
        assert_eq!(text, r#"{"one":-0.0,"other":0.1}"#);
        assert!(read.one.is_sign_negative());
        assert!(serde_json::from_str::<Pair>(r#"{"one":"x","other":1}"#).is_err());
        let whole: Pair = serde_json::from_str(r#"{"one":-3,"other":4}"#).unwrap();
        assert_eq!((whole.one, whole.other), (-3.0, Some(4.0)));
    }
}
