//! Names of attempt pods. A pod of a DeadlineJob is `<job>-<hash of the job's uid>-<task>-<attempt>`. A pod of an
//! adopted Job follows the convention of the Job controller: `<job>-<index>-<suffix>`, or `<job>-<suffix>` where pods
//! have no index. The suffix looks as random as the Job controller's, but follows from the Job, the task and the
//! attempt, so that a repeated creation is harmless.

use std::sync::Arc;

use crate::api;
use crate::validate::{Adopted, ValidatedJob};

/// Longest name of a pod that is also a valid label and host name.
pub(crate) const NAME_MAX: usize = 63;
/// The letters that Kubernetes takes for suffixes: no vowels, hence no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of a suffix.
const LENGTH: usize = 5;
/// How many suffixes there are.
const SUFFIXES: u64 = 27_u64.pow(5);
/// Spreads neighbors over all suffixes; it shares no divisor with their number, so that no two meet.
const STRIDE: u64 = 8_867_453;
/// Inverse of the stride.
const STRIDE_INVERSE: u64 = 227_540;
const _: () = assert!(STRIDE * STRIDE_INVERSE % SUFFIXES == 1);
/// Distance between the numbers of two attempts of a task: no job has more tasks.
const DISTANCE: u64 = api::TASKS_MAX as u64;

/// An object's name as the value of a label, which is shorter and ends with a letter or a digit.
pub(crate) fn label_value(name: &str) -> String {
    let cut: String = name.chars().take(NAME_MAX).collect();
    cut.trim_end_matches(['-', '.']).to_owned()
}

/// Name of an attempt's pod: `<job>-<hash of the job's uid>-<task>-<attempt>`. The job's name
/// is cut so that the whole fits; the hash keeps jobs of the same beginning apart.
pub fn attempt_pod(job: &str, uid: &str, task: u32, attempt: u32) -> String {
    let tail = format!("-{:08x}-{task}-{attempt}", fnv1a(uid.as_bytes()));
    let head: String = job.chars().take(NAME_MAX - tail.len()).collect();
    // A cut may end on a character that may not stand before the dash of the tail.
    format!("{}{tail}", head.trim_end_matches(['-', '.']))
}

/// The task and the number that give a pod of this `DeadlineJob` its name; none if no attempt has that name.
pub fn of_attempt_pod(job: &str, uid: &str, pod: &str) -> Option<(u32, u32)> {
    let (rest, attempt) = pod.rsplit_once('-')?;
    let (_, task) = rest.rsplit_once('-')?;
    let id = (task.parse().ok()?, attempt.parse().ok()?);
    (attempt_pod(job, uid, id.0, id.1) == pod).then_some(id)
}

/// Name of an attempt's pod, by the convention of its owner.
pub fn of_attempt(job: &ValidatedJob, task: u32, attempt: u32) -> String {
    match &job.adopted {
        Some(adopted) => of_job_pod(adopted, task, attempt),
        None => attempt_pod(&job.name, &job.uid, task, attempt),
    }
}

/// batch/v1's host name of a task, `<job>-<index>`, cut so that it is a label.
pub(crate) fn host_name(job: &str, task: u32) -> String {
    let tail = format!("-{task}");
    let head: String = job.chars().take(NAME_MAX - tail.len()).collect();
    format!("{}{tail}", head.replace('.', "-"))
}

/// FNV-1a, 32 bit: stable over versions of compilers and of this program, as names must be.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The label selector of a job's attempt pods.
pub fn selector(uid: &Arc<str>) -> String {
    format!("{}={uid}", api::LABEL_JOB_UID)
}

/// Name of an attempt's pod.
pub fn of_job_pod(job: &Adopted, task: u32, attempt: u32) -> String {
    pod_name(&job.name, &job.uid, job.indexed, task, attempt)
}

fn pod_name(job: &str, uid: &str, indexed: bool, task: u32, attempt: u32) -> String {
    let (task, attempt) = (u64::from(task), u64::from(attempt));
    let start = u64::from(fnv1a(uid.as_bytes()));
    let tail = match indexed {
        true => format!("-{task}-{}", suffix(start + task, attempt)),
        false => format!("-{}", suffix(start, attempt * DISTANCE + task)),
    };
    let head: String = job.chars().take(NAME_MAX - tail.len()).collect();
    format!("{}{tail}", head.trim_end_matches(['-', '.']))
}

/// The task and the number that give a pod of this Job its name; none if no attempt has that name.
/// The Job controller's own suffixes have numbers too, so the name alone does not make an attempt.
pub fn attempt_of(job: &str, uid: &str, pod: &str, indexed: bool) -> Option<(u32, u32)> {
    let (rest, suffix) = pod.rsplit_once('-')?;
    let start = u64::from(fnv1a(uid.as_bytes()));
    let (task, attempt) = if indexed {
        let task: u32 = rest.rsplit_once('-')?.1.parse().ok()?;
        (task, number(start + u64::from(task), suffix)?)
    } else {
        let number = number(start, suffix)?;
        let task = u32::try_from(number % DISTANCE).ok()?;
        (task, number / DISTANCE)
    };
    let attempt = u32::try_from(attempt).ok()?;
    (pod_name(job, uid, indexed, task, attempt) == pod).then_some((task, attempt))
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

/// The number of a suffix.
fn number(start: u64, suffix: &str) -> Option<u64> {
    let (low, high) = suffix.split_at_checked(LENGTH)?;
    let steps = (value(low)? + SUFFIXES - start % SUFFIXES) % SUFFIXES * STRIDE_INVERSE;
    let high = if high.is_empty() { 0 } else { value(high)? };
    Some(high * SUFFIXES + steps % SUFFIXES)
}

/// Reverses [`letters`]. None unless the text has exactly these letters and this length.
fn value(text: &str) -> Option<u64> {
    let digits = text.bytes().rev().map(|letter| {
        let digit = LETTERS.iter().position(|&known| known == letter)?;
        u64::try_from(digit).ok()
    });
    let is_one = text.len() == LENGTH;
    is_one
        .then(|| {
            digits
                .into_iter()
                .try_fold(0, |sum, digit| Some(sum * 27 + digit?))
        })
        .flatten()
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
            plain: true,
            replaces_deleted: true,
            says_idempotency: false,
            queued: false,
            selector: kube::core::Selector::default(),
            template_extras: std::sync::Arc::default(),
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

    #[test]
    fn a_name_tells_its_attempt_and_no_other_name_does() {
        let long = "a".repeat(62);
        for (name, indexed) in [("pi", true), ("pi", false), ("pi-3", true), (&long, true)] {
            let job = job(name, indexed);
            for id in [
                (0, 0),
                (7, 3),
                (99_999, 200),
                (3, 20_000_000),
                (0, 1_000_000_000),
            ] {
                let pod = of_job_pod(&job, id.0, id.1);
                assert_eq!(attempt_of(name, &job.uid, &pod, indexed), Some(id), "{pod}");
                assert_ne!(attempt_of("other", &job.uid, &pod, indexed), Some(id));
                assert_ne!(attempt_of(name, "another uid", &pod, indexed), Some(id));
            }
        }
        for pod in [
            "pi",
            "pi-3",
            "pi-3-debug",
            "pi-3-bcdfgh",
            "pi-x-bcdfg",
            "pi-03-bcdfg",
        ] {
            assert_eq!(attempt_of("pi", "8f0c2a52-0000", pod, true), None, "{pod}");
        }
    }

    #[test]
    fn names_fit_and_stay_apart_for_any_job_name() {
        let long = "a".repeat(300);
        let name = attempt_pod(&long, "uid-1", 99_999, 4_294_967_295);
        assert!(name.len() <= NAME_MAX, "{name}");
        assert_ne!(
            attempt_pod(&long, "uid-1", 1, 0),
            attempt_pod(&long, "uid-2", 1, 0)
        );
        assert_ne!(attempt_pod("a", "u", 1, 11), attempt_pod("a", "u", 11, 1));
        assert_eq!(
            attempt_pod("count", "u", 3, 1),
            attempt_pod("count", "u", 3, 1)
        );
        let dotted = attempt_pod(&format!("{}.{}", "a".repeat(45), "b".repeat(20)), "u", 1, 0);
        assert!(!dotted.contains(".-"), "{dotted}");
    }
}
