//! Natural order of names: runs of digits compare as numbers, so that `y2` comes before `y10`.
//!
//! The crate `natord` compares digits behind a leading zero as a fraction, so that `005d` precedes
//! `01d`, and ignores white space. That changes the order of jobs in a trace of ours (workflows_a).

use std::cmp::Ordering;

/// A name that compares naturally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Natural<'a>(&'a str);

pub(super) fn natural(text: &str) -> Natural<'_> {
    Natural(text)
}

impl Ord for Natural<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (self.0.as_bytes(), other.0.as_bytes());
        loop {
            let (digits_a, digits_b) = (digits(a), digits(b));
            if digits_a > 0 && digits_b > 0 {
                let (number_a, number_b) = (trim(&a[..digits_a]), trim(&b[..digits_b]));
                let order = number_a
                    .len()
                    .cmp(&number_b.len())
                    .then(number_a.cmp(number_b));
                if order.is_ne() {
                    return order;
                }
                (a, b) = (&a[digits_a..], &b[digits_b..]);
                continue;
            }
            match (a.first(), b.first()) {
                (Some(x), Some(y)) if x == y => (a, b) = (&a[1..], &b[1..]),
                // Names that differ only in leading zeros are still two names.
                (None, None) => return self.0.cmp(other.0),
                (x, y) => return x.cmp(&y),
            }
        }
    }
}

impl PartialOrd for Natural<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn trim(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_compare_as_numbers() {
        let mut names = [
            "y10", "y2", "y", "s4.12", "s4.9", "s10.1", "7", "07", "m-005d", "m-01d",
        ];
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        assert_eq!(
            names,
            [
                "07", "7", "m-01d", "m-005d", "s4.9", "s4.12", "s10.1", "y", "y2", "y10"
            ]
        );
    }
}
