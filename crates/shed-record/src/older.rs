//! Recordings of older schemas, in the words of this one.

use shed_core::settings::Parsed;

use crate::schema::PolicyText;

/// Up to this schema policies had the parameters of [`CONSTANTS`] and [`VARIANTS`].
const MANY_PARAMETERS: u32 = 4;

/// Parameters that are constants now.
const CONSTANTS: [(&str, &str, f64); 4] = [
    ("shed-prime", "min_pocd", 0.02),
    ("shed-prime", "reroll_gain", 0.1),
    ("shed-prime", "preempt_within", 0.4),
    ("shed-prime", "preempt_apart", 3.0),
];

/// Parameters of Shed+ that are one word now: as printed, and tuned. The printed variant had no
/// use for `min_pocd`.
const VARIANTS: [(&str, [&str; 2]); 7] = [
    ("rate_prior", ["0", "0.2"]),
    ("straggler_miss", ["1", "0.15"]),
    ("miss_target", ["0", "0.01"]),
    ("min_pocd", ["", "0.005"]),
    ("silent", ["off", "on"]),
    ("keep", ["off", "on"]),
    ("mode", ["paper", ""]),
];

/// The text of a policy that a writer of that schema wrote.
///
/// # Errors
/// If this version has no policy that decides like it.
pub fn policy_text(schema: u32, text: &str) -> Result<String, String> {
    if schema > MANY_PARAMETERS {
        return Ok(text.to_owned());
    }
    let mut parsed = Parsed::new(text)?;
    for (policy, parameter, value) in CONSTANTS {
        if parsed.name == policy
            && let Some(found) = parsed.take(parameter)
            && found.parse() != Ok(value)
        {
            return Err(format!(
                "{parameter}={found} is not possible any more, only {value}"
            ));
        }
    }
    if parsed.name == "shed-plus" {
        take_variant(&mut parsed)?;
    }
    let pairs = parsed.pairs.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(format!("{}{{{}}}", parsed.name, pairs.join(",")))
}

/// Puts the variant in the place of the parameters that spelled it.
fn take_variant(parsed: &mut Parsed<'_>) -> Result<(), String> {
    let is_printed = parsed.pairs.contains(&("mode", "paper"));
    for (parameter, [printed, tuned]) in VARIANTS {
        let is_other_mode = parameter == "mode" && !is_printed;
        let Some(found) = (!is_other_mode).then(|| parsed.take(parameter)).flatten() else {
            continue;
        };
        let expected = if is_printed { printed } else { tuned };
        if !expected.is_empty() && found != expected {
            return Err(format!(
                "{parameter}={found} is not possible any more: Shed+ is variant=printed or \
                 variant=tuned"
            ));
        }
    }
    let variant = if is_printed { "printed" } else { "tuned" };
    parsed.pairs.push(("variant", variant));
    Ok(())
}

/// The file that held what an older schema has in a place of its own.
pub fn files(policy: &mut PolicyText) -> Option<(String, String)> {
    let networks = policy.networks.take()?;
    Some(("laser.json".to_owned(), networks.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUS: &str = "shed-plus{xi=0.1,max_clones=5";

    #[test]
    fn parameters_that_spelled_a_variant_become_one_word() {
        for (older, newer) in [
            (
                "miss_target=0,min_pocd=0.005,mode=paper,silent=off,keep=off,straggler_miss=1,rate_prior=0",
                "variant=printed",
            ),
            (
                "miss_target=0.01,min_pocd=0.005,mode=marginal,silent=on,keep=on,straggler_miss=0.15,rate_prior=0.2",
                "mode=marginal,variant=tuned",
            ),
        ] {
            let text = policy_text(4, &format!("{PLUS},{older},order=lst}}"));
            let expected = match newer.split_once(',') {
                Some((mode, variant)) => format!("{PLUS},{mode},order=lst,{variant}}}"),
                None => format!("{PLUS},order=lst,{newer}}}"),
            };
            assert_eq!(text, Ok(expected));
        }
    }

    #[test]
    fn constants_are_left_out_and_other_values_refused() {
        let text = "shed-prime{min_pocd=0.02,preempt_apart=3,weigh=off,order=lst}";
        let newer = "shed-prime{weigh=off,order=lst}";
        assert_eq!(policy_text(4, text), Ok(newer.to_owned()));
        assert_eq!(policy_text(5, text), Ok(text.to_owned()));
        for text in ["shed-prime{reroll_gain=1}", "shed-plus{keep=off}"] {
            let fault = policy_text(3, text).unwrap_err();
            assert!(fault.contains("not possible any more"), "{fault}");
        }
    }
}
