//! Names of an adopted Job's pods, by the Job controller's convention: `<job>-<index>-<suffix>`, or
//! `<job>-<suffix>` where pods have no index. The suffix looks as random as the Job controller's, but
//! follows from the Job, the task and the attempt, so that a repeated creation is harmless.

use super::Adopted;
use crate::controller::build::fnv1a;

/// Longest name of a pod that is also a valid label and host name.
const NAME_MAX: usize = 63;
/// The letters that Kubernetes takes for suffixes: no vowels, hence no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of a suffix.
const LENGTH: usize = 5;
/// How many suffixes there are.
const SUFFIXES: u64 = 27_u64.pow(5);
/// Spreads neighbours over all suffixes; it shares no divisor with their number, so that no two meet.
const STRIDE: u64 = 8_867_453;
/// Tasks of one job at most.
const TASKS_MAX: u64 = 100_000;

/// Name of an attempt's pod.
#[must_use]
pub fn of_job_pod(job: &Adopted, task: u32, attempt: u32) -> String {
    let (task, attempt) = (u64::from(task), u64::from(attempt));
    let start = u64::from(fnv1a(job.uid.as_bytes()));
    let tail = match job.indexed {
        true => format!("-{task}-{}", suffix(start + task, attempt)),
        false => format!("-{}", suffix(start, attempt * TASKS_MAX + task)),
    };
    let head: String = job.name.chars().take(NAME_MAX - tail.len()).collect();
    format!("{}{tail}", head.trim_end_matches(['-', '.']))
}

/// Another for each number: beyond the last of five letters it grows.
fn suffix(start: u64, number: u64) -> String {
    let low = (start + (number % SUFFIXES) * STRIDE) % SUFFIXES;
    let mut text = letters(low, LENGTH);
    match number / SUFFIXES {
        0 => {}
        high => text.push_str(&letters(high, LENGTH)),
    }
    text
}

fn letters(mut number: u64, length: usize) -> String {
    let mut text = String::with_capacity(length);
    for _ in 0..length {
        let letter = usize::try_from(number % 27).unwrap_or(0);
        text.push(char::from(LETTERS[letter]));
        number /= 27;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn job(name: &str, indexed: bool) -> Adopted {
        Adopted {
            name: name.into(),
            uid: "8f0c2a52-0000".into(),
            indexed,
            work_queue: false,
            per_index: false,
            restarts: false,
            plain: true,
            selector: kube::core::Selector::default(),
        }
    }

    #[test]
    fn names_look_like_the_job_controllers() {
        let name = of_job_pod(&job("pi", true), 3, 0);
        let suffix = name.strip_prefix("pi-3-").unwrap();
        assert_eq!(suffix.len(), LENGTH);
        assert!(suffix.bytes().all(|letter| LETTERS.contains(&letter)));
        assert_eq!(name, of_job_pod(&job("pi", true), 3, 0), "always the same");
        let long = of_job_pod(&job(&"x.".repeat(100), false), 7, 9);
        assert!(long.len() <= NAME_MAX && !long.contains(".-"), "{long}");
    }

    #[test]
    fn no_two_attempts_of_a_job_share_a_name() {
        for indexed in [true, false] {
            let job = job("pi", indexed);
            let ids = (0..500).flat_map(|task| (0..40).map(move |attempt| (task, attempt)));
            let far = (99_990..100_000).flat_map(|task| [(task, 0), (task, 143), (task, 100_000)]);
            let ids: Vec<_> = ids.chain(far).collect();
            let names: BTreeSet<_> = ids.iter().map(|&(t, a)| of_job_pod(&job, t, a)).collect();
            assert_eq!(names.len(), ids.len());
        }
    }
}
