//! Settings written as `name{a=1,b=x}`: one reader, one writer and one help text for policies,
//! simulated workloads and attempt-time models. A policy only lists its parameters with their ranges.

use std::fmt;

use crate::time::Span;

/// The error for a text that is not a policy; the message lists the valid ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsePolicyError(String);

impl ParsePolicyError {
    /// The error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ParsePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParsePolicyError {}

/// One parameter: its name in the text and where its value is kept.
pub struct Setting<'a> {
    name: &'static str,
    value: Value<'a>,
}

enum Value<'a> {
    Number(&'a mut f64, [f64; 2]),
    Whole(&'a mut u32, [u32; 2]),
    Seconds(&'a mut Span, [f64; 2]),
    Switch(&'a mut bool),
    Word(&'a mut dyn Word),
    Retired {
        was: &'static str,
        why: &'static str,
    },
}

/// A parameter whose value is one of a few words.
pub trait Word {
    /// All of them, in the order of the help text.
    fn words(&self) -> Vec<&'static str>;
    /// The chosen word.
    fn word(&self) -> &'static str;
    /// Chooses; false if there is no such word.
    fn choose(&mut self, word: &str) -> bool;
}

/// Makes an enum a [`Word`], given the word of each of its values.
#[macro_export]
macro_rules! word {
    ($name:ty, [$($value:path => $word:literal),* $(,)?]) => {
        impl $crate::settings::Word for $name {
            fn words(&self) -> Vec<&'static str> {
                vec![$($word),*]
            }

            fn word(&self) -> &'static str {
                match self {
                    $($value => $word,)*
                }
            }

            fn choose(&mut self, word: &str) -> bool {
                match word {
                    $($word => *self = $value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}
pub use crate::word;

impl<'a> Setting<'a> {
    /// A number within `low..=high`.
    pub fn number(name: &'static str, at: &'a mut f64, low: f64, high: f64) -> Self {
        let value = Value::Number(at, [low, high]);
        Self { name, value }
    }

    /// A whole number within `low..=high`.
    pub fn whole(name: &'static str, at: &'a mut u32, low: u32, high: u32) -> Self {
        let value = Value::Whole(at, [low, high]);
        Self { name, value }
    }

    /// A time in seconds within `low..=high`.
    pub fn seconds(name: &'static str, at: &'a mut Span, low: f64, high: f64) -> Self {
        let value = Value::Seconds(at, [low, high]);
        Self { name, value }
    }

    /// `on` or `off`.
    pub fn switch(name: &'static str, at: &'a mut bool) -> Self {
        let value = Value::Switch(at);
        Self { name, value }
    }

    /// One of a few words.
    pub fn word(name: &'static str, at: &'a mut dyn Word) -> Self {
        let value = Value::Word(at);
        Self { name, value }
    }

    /// A parameter that earlier versions had. Texts that set it to what `was` its default are still valid; the error for
    /// any other value says `why` there is no other value.
    pub fn retired(name: &'static str, was: &'static str, why: &'static str) -> Self {
        let value = Value::Retired { was, why };
        Self { name, value }
    }

    /// Whether the parameter has no effect, and is not written.
    pub(crate) fn is_retired(&self) -> bool {
        matches!(self.value, Value::Retired { .. })
    }

    /// Sets the parameter; the error describes the fault of `text`.
    fn read(&mut self, text: &str) -> Result<(), String> {
        let name = self.name;
        match &mut self.value {
            Value::Number(at, range) => **at = number(name, text, *range)?,
            Value::Whole(at, [low, high]) => {
                let range = [f64::from(*low), f64::from(*high)];
                let parsed = number(name, text, range)?;
                if parsed.fract() != 0.0 {
                    return Err(format!("{name}={text} is not a whole number"));
                }
                // A whole number of that range: the cast is exact.
                **at = parsed as u32;
            }
            Value::Seconds(at, range) => {
                **at = Span::from_seconds_f64(number(name, text, *range)?);
            }
            Value::Switch(at) => {
                **at = match text {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("{name}={text} is neither on nor off")),
                };
            }
            Value::Word(at) => {
                if !at.choose(text) {
                    return Err(format!("unknown {name} `{text}`"));
                }
            }
            Value::Retired { was, .. } if text == *was => {}
            Value::Retired { why, .. } => {
                return Err(format!("{name}={text}: {why}; remove {name}"));
            }
        }
        Ok(())
    }

    /// `name (its valid values)`.
    fn help(&self) -> String {
        let name = self.name;
        match &self.value {
            Value::Number(_, [low, high]) => format!("{name} ({low} to {high})"),
            Value::Whole(_, [low, high]) => format!("{name} (whole, {low} to {high})"),
            Value::Seconds(_, [low, high]) => format!("{name} (seconds, {low} to {high})"),
            Value::Switch(_) => format!("{name} (on, off)"),
            Value::Word(at) => format!("{name} ({})", at.words().join(", ")),
            Value::Retired { was, .. } => format!("{name} ({was})"),
        }
    }
}

impl fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.name)?;
        match &self.value {
            Value::Number(at, _) => write!(f, "{at}"),
            Value::Whole(at, _) => write!(f, "{at}"),
            Value::Seconds(at, _) => write!(f, "{}", at.seconds()),
            Value::Switch(at) => f.write_str(if **at { "on" } else { "off" }),
            Value::Word(at) => f.write_str(at.word()),
            Value::Retired { was, .. } => f.write_str(was),
        }
    }
}

fn number(name: &str, text: &str, [low, high]: [f64; 2]) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok();
    parsed
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| format!("{name}={text} is not from {low} to {high}"))
}

/// A parsed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The name before the braces.
    pub name: &'a str,
    /// Parameters and their values, in the order of the text.
    pub pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Parsed<'a> {
    /// Parses the form only.
    ///
    /// # Errors
    /// If the form is wrong; the error describes how.
    pub fn new(text: &'a str) -> Result<Self, String> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('{') else {
            let pairs = Vec::new();
            return Ok(Self { name: text, pairs });
        };
        let inner = rest.strip_suffix('}');
        let inner = inner.ok_or_else(|| format!("`{text}` lacks its `}}`"))?;
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in split(inner).into_iter().map(str::trim) {
            if part.is_empty() {
                continue;
            }
            let pair = part.split_once('=');
            let (name, value) = pair.ok_or_else(|| format!("`{part}` is not name=value"))?;
            let (name, value) = (name.trim(), value.trim());
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(format!("`{name}` is given twice"));
            }
            pairs.push((name, value));
        }
        let name = name.trim_end();
        Ok(Self { name, pairs })
    }

    /// Takes the value of a parameter out.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.pairs.iter().position(|(other, _)| *other == name)?;
        Some(self.pairs.remove(at).1)
    }

    /// Takes a number within `low..=high` out, if the text has that parameter.
    ///
    /// # Errors
    /// If it is no such number.
    pub fn take_number(&mut self, name: &str, low: f64, high: f64) -> Result<Option<f64>, String> {
        let text = self.take(name);
        text.map(|text| number(name, text, [low, high])).transpose()
    }

    /// Checks that every parameter was taken out.
    ///
    /// # Errors
    /// If one remains, because it is unknown.
    pub fn none_left(&self) -> Result<(), String> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, parameter: &str) -> String {
        format!("`{}` has no parameter `{parameter}`", self.name)
    }

    /// Sets what the text sets.
    ///
    /// # Errors
    /// If a parameter is unknown or its value is not valid.
    pub fn read_into(&self, mut settings: Vec<Setting<'_>>) -> Result<(), String> {
        for (name, value) in &self.pairs {
            let setting = settings.iter_mut().find(|setting| setting.name == *name);
            match setting {
                Some(setting) => setting.read(value)?,
                None => return Err(self.unknown(name)),
            }
        }
        Ok(())
    }
}

/// Splits at the commas outside inner braces.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0i32, 0, Vec::new());
    for (at, char) in text.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(text.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(begin..));
    parts
}

/// `name{a=1,b=x}`, or the name alone where there is nothing to set.
///
/// # Errors
/// If the formatter fails.
pub fn write(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    parts: impl IntoIterator<Item = String>,
) -> fmt::Result {
    let parts: Vec<String> = parts.into_iter().collect();
    f.write_str(name)?;
    if parts.is_empty() {
        return Ok(());
    }
    write!(f, "{{{}}}", parts.join(","))
}

/// The parameters of `name`, for the message of an error.
pub fn help(name: &str, settings: &[Setting<'_>]) -> String {
    if settings.is_empty() {
        return format!("`{name}` has no parameters");
    }
    let valid = settings.iter().filter(|setting| !setting.is_retired());
    let list: Vec<String> = valid.map(Setting::help).collect();
    format!("the parameters of `{name}` are {}", list.join(", "))
}
