//! Alerting rules, and the same rules with their times divided by [`FACTOR`].
//!
//! Ranges (`[5m]`), `for`, `keep_firing_for` and the interval of a group are divided. Thresholds stay: a poll that is
//! 10 s late is 10 s late.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_yaml_ng::{Mapping, Value};

/// Divisor of all times.
pub const FACTOR: u64 = 60;
/// A rate needs a few scrapes, one per second.
const RANGE_MIN_MS: u64 = 3000;
/// Fields of a rule and of a group that are times.
const TIMES: [&str; 3] = ["for", "keep_firing_for", "interval"];
/// Units of a duration in milliseconds, `ms` before `m`.
const UNITS: [(&str, u64); 7] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 7 * 86_400_000),
    ("y", 365 * 86_400_000),
];

/// An alerting rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Its name.
    pub name: String,
    /// Its expression.
    pub expression: String,
}

/// A rule file.
pub struct Rules {
    document: Value,
}

impl Rules {
    /// Reads a rule file.
    pub fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).with_context(|| {
            format!("--rules {shown}: name the rule file, by default manifests/alerts.yaml")
        })?;
        let document: Value =
            serde_yaml_ng::from_str(&text).with_context(|| format!("--rules {shown}"))?;
        ensure!(
            document["groups"].is_sequence(),
            "--rules {shown}: no `groups`, so it is not a rule file of Prometheus: name manifests/alerts.yaml"
        );
        Ok(Self { document })
    }

    /// The alerts, in the order of the file.
    pub fn alerts(&self) -> Vec<Alert> {
        let groups = self.document["groups"].as_sequence().into_iter().flatten();
        let rules = groups.flat_map(|group| group["rules"].as_sequence().into_iter().flatten());
        let alert = |rule: &Value| {
            Some(Alert {
                name: rule["alert"].as_str()?.to_owned(),
                expression: rule["expr"].as_str()?.to_owned(),
            })
        };
        rules.filter_map(alert).collect()
    }

    /// The rule file with all times divided.
    pub fn shrunk(&self) -> Result<String> {
        let mut document = self.document.clone();
        let groups = document["groups"].as_sequence_mut();
        for group in groups.into_iter().flatten() {
            shrink_times(group)?;
            for rule in group["rules"].as_sequence_mut().into_iter().flatten() {
                shrink_rule(rule)?;
            }
        }
        Ok(serde_yaml_ng::to_string(&document)?)
    }
}

fn shrink_rule(rule: &mut Value) -> Result<()> {
    let name = rule["alert"].as_str().or(rule["record"].as_str());
    let context = format!("rule {}", name.unwrap_or("without a name"));
    shrink_times(rule).with_context(|| context.clone())?;
    let expression = rule["expr"].as_str().context("a rule without `expr`")?;
    let shrunk = shrink_ranges(expression).context(context)?;
    rule["expr"] = Value::String(shrunk);
    Ok(())
}

fn shrink_times(of: &mut Value) -> Result<()> {
    let Some(fields) = of.as_mapping_mut() else {
        return Ok(());
    };
    for name in TIMES {
        shrink_field(fields, name).with_context(|| format!("field {name}"))?;
    }
    Ok(())
}

fn shrink_field(fields: &mut Mapping, name: &str) -> Result<()> {
    if let Some(time) = fields.get_mut(name) {
        let text = time.as_str().context("not a duration such as 5m")?;
        *time = Value::String(written(divided(text)?));
    }
    Ok(())
}

/// The expression with its ranges divided.
fn shrink_ranges(expression: &str) -> Result<String> {
    ensure!(
        !expression.contains(" offset "),
        "`offset` is not divided: extend e2e/src/monitoring/rules.rs"
    );
    let mut shrunk = String::new();
    let mut quote = None;
    let mut rest = expression.char_indices();
    while let Some((at, character)) = rest.next() {
        shrunk.push(character);
        match quote {
            Some(open) if open == character => quote = None,
            Some(_) => {}
            None if matches!(character, '"' | '\'' | '`') => quote = Some(character),
            None if character == '[' => {
                let inner = &expression[at + 1..];
                let (range, _) = inner.split_once(']').context("a range without its end")?;
                shrunk.push_str(&shrink_range(range)?);
                let end = at + 1 + range.len();
                shrunk.push(']');
                rest = expression.char_indices();
                rest.by_ref().take_while(|(seen, _)| *seen < end).count();
            }
            None => {}
        }
    }
    Ok(shrunk)
}

/// A range, or the range and the step of a subquery.
fn shrink_range(range: &str) -> Result<String> {
    let (length, step) = match range.split_once(':') {
        Some((length, step)) => (length, Some(step)),
        None => (range, None),
    };
    let millis = divided(length)?;
    ensure!(
        millis >= RANGE_MIN_MS,
        "the range {length} shrinks to {millis} ms, which has fewer than three scrapes"
    );
    let step = step.map(shrink_step).transpose()?;
    Ok(written(millis) + step.as_deref().unwrap_or_default())
}

fn shrink_step(step: &str) -> Result<String> {
    match step.trim() {
        "" => Ok(":".to_owned()),
        step => Ok(format!(":{}", written(divided(step)?))),
    }
}

/// A duration of Prometheus divided by [`FACTOR`], in milliseconds.
fn divided(text: &str) -> Result<u64> {
    let mut rest = text.trim();
    ensure!(!rest.is_empty(), "an empty duration");
    let mut millis = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let known = UNITS.iter().find(|(unit, _)| after.starts_with(unit));
        let (Ok(number), Some((unit, size))) = (number.parse::<u64>(), known) else {
            bail!("`{text}` is not a duration such as 5m or 1h30m");
        };
        millis += number * size;
        rest = &after[unit.len()..];
    }
    Ok(millis / FACTOR)
}

fn written(millis: u64) -> String {
    if millis.is_multiple_of(1000) {
        format!("{}s", millis / 1000)
    } else {
        format!("{millis}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules {
            document: serde_yaml_ng::from_str(text).unwrap(),
        }
    }

    #[test]
    fn ranges_are_divided_and_names_and_strings_stay() {
        let shrunk = shrink_ranges(r#"a:ratio_5m{b="[5m]"} / rate(c[1h]) > 5 * d[1d:5m]"#).unwrap();
        assert_eq!(
            shrunk,
            r#"a:ratio_5m{b="[5m]"} / rate(c[60s]) > 5 * d[1440s:5s]"#
        );
        assert_eq!(shrink_ranges("e[1h30m]").unwrap(), "e[90s]");
    }

    #[test]
    fn times_that_can_not_be_divided_are_refused() {
        for (wrong, word) in [
            ("rate(a[1m])", "three scrapes"),
            ("rate(a[5 apples])", "not a duration"),
            ("rate(a[5m", "without its end"),
            ("a offset 5m", "offset"),
        ] {
            let said = format!("{:#}", shrink_ranges(wrong).unwrap_err());
            assert!(said.contains(word), "{wrong}: {said}");
        }
    }

    #[test]
    fn only_times_of_rules_change() {
        let text = "groups: [{name: g, interval: 1m, rules: [{record: r, expr: 'x[3h]'}, \
                    {alert: A, expr: 'y > 2', for: 0m, keep_firing_for: 90s, labels: {for: 5m}}]}]";
        let rules = rules(text);
        let names: Vec<String> = rules.alerts().into_iter().map(|alert| alert.name).collect();
        assert_eq!(names, ["A"]);
        let shrunk: Value = serde_yaml_ng::from_str(&rules.shrunk().unwrap()).unwrap();
        let wanted = "groups: [{name: g, interval: 1s, rules: [{record: r, expr: 'x[180s]'}, \
                      {alert: A, expr: 'y > 2', for: 0s, keep_firing_for: 1500ms, labels: {for: 5m}}]}]";
        assert_eq!(shrunk, serde_yaml_ng::from_str::<Value>(wanted).unwrap());
    }

    #[test]
    fn the_rules_of_the_repository_can_be_divided() {
        let file = crate::command::repository().join("manifests/alerts.yaml");
        let rules = Rules::read(&file).unwrap();
        assert!(rules.alerts().len() > 5);
        assert!(!rules.shrunk().unwrap().contains("[1h]"));
    }
}
