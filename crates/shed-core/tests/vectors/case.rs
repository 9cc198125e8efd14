//! One golden case: typed access to its input, and comparison of results with its output that
//! remembers which outputs were looked at.

use std::collections::BTreeSet;

use serde_json::Value;

/// Relative tolerance of probabilities and sums of them.
const POCD_RTOL: f64 = 1e-9;
/// Absolute tolerance, for values that underflow.
const UNDERFLOW: f64 = 1e-300;

pub struct Case<'a> {
    id: String,
    pub input: &'a Value,
    out: &'a Value,
    /// Relative tolerance of logarithms and times.
    rtol: f64,
    /// Keys of `out` that were compared.
    compared: BTreeSet<String>,
    failures: Vec<String>,
}

impl<'a> Case<'a> {
    /// Runs `check` on the case; what differs, and what it forgot to compare, as sentences.
    pub fn run(value: &'a Value, check: fn(&mut Case)) -> Vec<String> {
        let mut case = Case {
            id: format!("{} ({})", text(&value["id"]), text(&value["tag"])),
            input: &value["in"],
            out: &value["out"],
            rtol: value["rtol"].as_f64().unwrap_or(1e-11),
            compared: BTreeSet::new(),
            failures: Vec::new(),
        };
        check(&mut case);
        let keys = value["out"].as_object().unwrap().keys();
        let forgotten: Vec<&str> = keys
            .map(String::as_str)
            .filter(|key| !case.compared.contains(*key))
            .collect();
        if !forgotten.is_empty() {
            case.fail(&format!("{forgotten:?} was not compared"));
        }
        case.failures
    }

    /// A number of the input.
    pub fn number(&self, key: &str) -> f64 {
        number(&self.input[key])
    }

    /// A count of the input.
    pub fn count(&self, key: &str) -> u32 {
        count(&self.input[key])
    }

    /// An output, marked as compared.
    pub fn output(&mut self, key: &str) -> &'a Value {
        self.compared.insert(key.into());
        &self.out[key]
    }

    /// Says that an output is left to another implementation.
    pub fn leave(&mut self, key: &str) {
        self.compared.insert(key.into());
    }

    /// An output that is a logarithm, a time, a size or a β; `null` stands for `null_means`.
    pub fn expect(&mut self, key: &str, got: f64, null_means: f64) {
        let wanted = self.output(key).as_f64().unwrap_or(null_means);
        self.close(key, got, wanted, self.rtol);
    }

    /// An output that is a probability.
    pub fn expect_pocd(&mut self, key: &str, got: f64) {
        let wanted = number(self.output(key));
        self.close_pocd(key, got, wanted);
    }

    /// An output that has to be met exactly.
    pub fn expect_exact(&mut self, key: &str, got: &Value) {
        let wanted = self.output(key);
        self.same(key, got, wanted);
    }

    pub fn same(&mut self, what: &str, got: &Value, wanted: &Value) {
        if got != wanted {
            self.fail(&format!("{what} is {got}, not {wanted}"));
        }
    }

    pub fn close_ln(&mut self, what: &str, got: f64, wanted: f64) {
        self.close(what, got, wanted, self.rtol);
    }

    pub fn close_pocd(&mut self, what: &str, got: f64, wanted: f64) {
        self.close(what, got, wanted, POCD_RTOL.max(self.rtol));
    }

    fn close(&mut self, what: &str, got: f64, wanted: f64, rtol: f64) {
        let near = (got - wanted).abs() <= rtol * wanted.abs() + UNDERFLOW;
        let same_infinity = got.is_infinite() && got.total_cmp(&wanted).is_eq();
        if !same_infinity && (!near || got.is_infinite() || wanted.is_infinite()) {
            self.fail(&format!("{what} is {got:e}, not {wanted:e}"));
        }
    }

    pub fn fail(&mut self, what: &str) {
        self.failures.push(format!("{}: {what}", self.id));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn count(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|value| u32::try_from(value).ok())
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// A list of numbers, in which `null` stands for `null_means`.
pub fn numbers(value: &Value, null_means: f64) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter()
        .map(|item| item.as_f64().unwrap_or(null_means))
        .collect()
}
