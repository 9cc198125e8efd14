//! The parameters of a question.

use super::Refusal;
use crate::api;

/// The parameters that nothing has read yet.
#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=1&b=2` with percent-encoding. A plus is a plus, as in a time's offset.
    pub fn parse(text: Option<&str>) -> Result<Self, Refusal> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in text
            .unwrap_or_default()
            .split('&')
            .filter(|it| !it.is_empty())
        {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::bad(format!("{name} is given twice: remove one")));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// Takes the value of a parameter out.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a whole number from 1 to `most` out.
    pub fn take_number(&mut self, name: &str, most: u32) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        let number = api::parse_whole(&text, most);
        let number = number.map_err(|why| Refusal::bad(format!("{name}={text}: {why}")))?;
        Ok(Some(number))
    }

    /// Takes `true` or `false` out; absent means false.
    pub fn take_flag(&mut self, name: &str) -> Result<bool, Refusal> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let error = format!("{name}={other}: use true or false");
                Err(Refusal::bad(error))
            }
        }
    }

    /// Checks that no other parameter was given.
    pub fn none_left(&self, known: &[&str]) -> Result<(), Refusal> {
        let Some((name, _)) = self.0.first() else {
            return Ok(());
        };
        Err(Refusal::bad(match known {
            [] => format!("unknown parameter {name}: this path has none"),
            known => format!(
                "unknown parameter {name}: this path has {}",
                known.join(", ")
            ),
        }))
    }
}

/// Decodes `%2B` and the like.
pub fn decoded(text: &str) -> Result<String, Refusal> {
    let wrong = || Refusal::bad(format!("{text}: not valid percent-encoding of UTF-8"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let byte = high.zip(low).map(|(high, low)| 16 * high + low);
        let byte = byte.and_then(|byte| u8::try_from(byte).ok());
        bytes.push(byte.ok_or_else(wrong)?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}
