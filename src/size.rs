//! Size of objects as JSON, the form in which etcd stores custom resources. etcd refuses more than
//! 1.5 MiB, and shed stays below 1 MiB. Pure.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// No object that shed writes is larger, in bytes of JSON: specification, metadata and status together.
pub const OBJECT_MAX: usize = 1024 * 1024;
/// No specification is taken that is larger: the rest is the ledger's.
pub const SPEC_MAX: usize = 256 * 1024;

/// Bytes of the value as JSON.
pub fn bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that cannot be encoded as JSON is not written either.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// The innermost field that has more than half of the value's bytes, and how many, as
/// `.template.spec.containers[0].env`; the value itself if none has.
pub fn largest<T: Serialize>(value: &T) -> (String, usize) {
    let whole = serde_json::to_value(value).unwrap_or_default();
    let (mut here, mut path, mut most) = (&whole, String::new(), bytes(&whole));
    let half = most / 2;
    while let Some((step, part, size)) = heaviest(here).filter(|(.., size)| *size > half) {
        path.push_str(&step);
        (here, most) = (part, size);
    }
    (path, most)
}

fn heaviest(value: &Value) -> Option<(String, &Value, usize)> {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| (format!(".{k}"), v)).collect(),
        Value::Array(entries) => {
            let entries = entries.iter().enumerate();
            entries.map(|(i, v)| (format!("[{i}]"), v)).collect()
        }
        _ => return None,
    };
    let sized = parts
        .into_iter()
        .map(|(step, part)| (step, part, bytes(part)));
    sized.max_by_key(|(.., size)| *size)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_text() {
        for value in [json!({"a": [1, "é\n", null]}), json!(""), json!([])] {
            assert_eq!(bytes(&value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn the_field_that_makes_a_value_large_is_named() {
        let large = "x".repeat(1000);
        let one = json!({"a": 1, "list": [{"env": 1}, {"env": [1, large]}]});
        assert_eq!(largest(&one), (".list[1].env[1]".to_owned(), 1002));
        let many = json!({"list": [large, large, large], "a": 1});
        assert_eq!(largest(&many).0, ".list");
        assert_eq!(largest(&json!(7)), (String::new(), 1));
    }
}
