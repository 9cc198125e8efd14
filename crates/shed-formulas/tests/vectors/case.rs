//! One golden case: typed access to its input, and comparison of results with its output that
//! remembers which outputs were looked at.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

/// Relative tolerance of probabilities and sums of them, schema `shed-family/1`.
const POCD_RTOL: f64 = 1e-9;
/// Absolute tolerance of utilities, schema `shed-family/1`.
const UTILITY_ATOL: f64 = 1e-9;
/// Absolute tolerance, for values that underflow.
const UNDERFLOW: f64 = 1e-300;

/// The precision of a file's numbers.
#[derive(Clone, Copy)]
pub struct Tolerances {
    rtol: f64,
}

impl Tolerances {
    /// The tolerance that `file` states for `kind`.
    pub fn of(file: &Value, kind: &str) -> Self {
        let of_kind = file["rtol_by_kind"][kind].as_f64();
        let rtol = of_kind.or(file["rtol"].as_f64());
        Self {
            rtol: rtol.expect("a file states its tolerance"),
        }
    }
}

pub struct Case<'a> {
    id: String,
    pub input: &'a Value,
    out: &'a Value,
    /// Relative tolerance of the case, or else of its file.
    rtol: f64,
    /// Keys of `out` that were compared.
    compared: BTreeSet<String>,
    failures: Vec<String>,
}

impl<'a> Case<'a> {
    /// Runs `check` on the case. Returns the differences, and outputs that were not compared, as
    /// sentences.
    pub fn run(value: &'a Value, file: Tolerances, check: fn(&mut Case)) -> Vec<String> {
        let mut case = Case {
            id: format!("{} ({})", text(&value["id"]), text(&value["tag"])),
            input: &value["in"],
            out: &value["out"],
            rtol: value["rtol"].as_f64().unwrap_or(file.rtol),
            compared: BTreeSet::new(),
            failures: Vec::new(),
        };
        let checked = catch_unwind(AssertUnwindSafe(|| check(&mut case)));
        if checked.is_err() {
            case.fail("the check panicked, see above");
            return case.failures;
        }
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

    /// A Pareto shape of the input; `null` stands for times that do not vary.
    pub fn shape(&self, key: &str) -> f64 {
        self.input[key].as_f64().unwrap_or(f64::INFINITY)
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

    pub fn close_utility(&mut self, what: &str, got: f64, wanted: f64) {
        if (got - wanted).abs() > UTILITY_ATOL {
            self.close(what, got, wanted, 0.0);
        }
    }

    /// Compares two lists by `close`, their lengths too.
    pub fn close_list(
        &mut self,
        what: &str,
        got: &[f64],
        wanted: &[f64],
        close: fn(&mut Self, &str, f64, f64),
    ) {
        if got.len() != wanted.len() {
            self.fail(&format!("{what} has {} elements", got.len()));
        }
        for (index, (&got, &wanted)) in got.iter().zip(wanted).enumerate() {
            close(self, &format!("{what}[{index}]"), got, wanted);
        }
    }

    /// All outputs at once, by the rule of schema `dollymp-sca/1`: numbers with a fraction within
    /// rtol·max(1, |a|, |b|), all else exactly.
    pub fn expect_all(&mut self, got: &Value) {
        for key in got.as_object().unwrap().keys() {
            self.compared.insert(key.clone());
        }
        self.near("out", got, self.out);
    }

    fn near(&mut self, what: &str, got: &Value, wanted: &Value) {
        match (got, wanted) {
            (Value::Array(list), Value::Array(other)) if list.len() == other.len() => {
                for (index, (got, wanted)) in list.iter().zip(other).enumerate() {
                    self.near(&format!("{what}[{index}]"), got, wanted);
                }
            }
            (Value::Object(map), Value::Object(other)) if map.keys().eq(other.keys()) => {
                for (key, wanted) in other {
                    self.near(&format!("{what}.{key}"), &map[key], wanted);
                }
            }
            (Value::Number(_), Value::Number(real)) if real.is_f64() => {
                let (a, b) = (number(got), number(wanted));
                if (a - b).abs() > self.rtol * a.abs().max(b.abs()).max(1.0) {
                    self.fail(&format!("{what} is {a:e}, not {b:e}"));
                }
            }
            _ => self.same(what, got, wanted),
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

/// A result as JSON: an infinite value is `null`, as in the files; NaN is shown.
pub fn float(value: f64) -> Value {
    if value.is_nan() {
        Value::from("NaN")
    } else {
        Value::from(value)
    }
}

/// The elements of a list.
pub fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}
