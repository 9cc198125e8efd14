//! The story of a run in three sentences: which task straggled and where, what its clone did, and when the
//! job was done.

use jiff::Timestamp;

use super::attempt::Attempt;
use super::outcome::winners;

/// A run of a job with a deadline.
pub struct Told<'a> {
    pub attempts: &'a [Attempt],
    pub created: Timestamp,
    /// Seconds from the creation.
    pub deadline: f64,
    /// When the same tasks were done without clones, in seconds; none if nothing compares.
    pub without_clones: Option<f64>,
    pub slow_node: Option<&'a str>,
}

/// Three sentences; fewer if no clone won, or no task did.
pub fn tell(run: &Told<'_>) -> String {
    let since = |time: Timestamp| time.duration_since(run.created).as_secs_f64();
    let mut sentences = Vec::new();
    if let Some((original, winner)) = straggler(run.attempts) {
        sentences.push(straggled(run, original, winner));
        sentences.push(saved(run, original, winner));
    } else {
        sentences.push("No task was finished by a clone.".to_owned());
    }
    if let Some(end) = winners(run.attempts)
        .filter_map(|winner| Some(winner.ended?.0))
        .max()
    {
        let (end, deadline) = (since(end), run.deadline);
        let margin = (deadline - end).abs();
        let side = if end <= deadline { "before" } else { "after" };
        sentences.push(format!(
            "The job was done after {end:.0} s, {margin:.0} s {side} its deadline of {deadline:.0} s."
        ));
    }
    sentences.join("\n")
}

/// The first attempt and the winner of the task that a later attempt finished last.
fn straggler(attempts: &[Attempt]) -> Option<(&Attempt, &Attempt)> {
    let rescued = winners(attempts).filter(|winner| winner.number > 0);
    let winner = rescued.max_by_key(|winner| winner.ended.map(|(end, _)| end))?;
    let original = attempts
        .iter()
        .find(|attempt| attempt.task == winner.task && attempt.number == 0)?;
    Some((original, winner))
}

fn straggled(run: &Told<'_>, original: &Attempt, winner: &Attempt) -> String {
    let is_slow = original.node.is_some() && original.node.as_deref() == run.slow_node;
    let slowed = if is_slow { ", the slowed node" } else { "" };
    let age = winner.created.duration_since(original.created);
    let done = if winner.resumes_at > 0.0 {
        format!(" and had done {:.0} %", winner.resumes_at * 100.0)
    } else {
        String::new()
    };
    format!(
        "Task {} straggled on {}{slowed}: its first attempt was {:.0} s old{done} when shed started the {} that won.",
        winner.task,
        original.place(),
        age.as_secs_f64(),
        winner.kind
    )
}

fn saved(run: &Told<'_>, original: &Attempt, winner: &Attempt) -> String {
    let end = winner.ended.map_or(run.created, |(end, _)| end);
    let took = end.duration_since(winner.created).as_secs_f64();
    let end = end.duration_since(run.created).as_secs_f64();
    let on = winner.place();
    let kind = &winner.kind;
    let own = format!("The {kind} took {took:.0} s on {on} and finished the task after {end:.0} s");
    let age = winner.created.duration_since(original.created);
    if let Some(without) = run.without_clones {
        let saved = without - end;
        format!("{own}; without clones the job took {without:.0} s, so clones saved {saved:.0} s.")
    } else if winner.resumes_at > 0.0 {
        let alone = age.as_secs_f64() / winner.resumes_at;
        format!("{own}; at its pace until then the first attempt would have taken {alone:.0} s.")
    } else {
        format!("{own}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn attempt(task: u32, number: u32, node: &str, from: i64, to: Option<i64>) -> Attempt {
        Attempt {
            task,
            number,
            kind: if number == 0 { "original" } else { "clone" }.to_owned(),
            node: Some(node.to_owned()),
            created: second(from),
            ended: to.map(|end| (second(end), 0)),
            resumes_at: if number == 0 { 0.0 } else { 0.05 },
            deleted: None,
        }
    }

    fn told(attempts: &[Attempt]) -> String {
        tell(&Told {
            attempts,
            created: second(0),
            deadline: 20.0,
            without_clones: Some(31.0),
            slow_node: Some("n2"),
        })
    }

    #[test]
    fn a_rescued_task_is_told_in_three_sentences() {
        let attempts = [
            attempt(0, 0, "n1", 0, Some(9)),
            attempt(5, 0, "n2", 0, None),
            attempt(5, 1, "n1", 6, Some(17)),
        ];
        assert_eq!(
            told(&attempts),
            "Task 5 straggled on n2, the slowed node: its first attempt was 6 s old and had done 5 % when shed started \
             the clone that won.\n\
             The clone took 11 s on n1 and finished the task after 17 s; without clones the job took 31 s, so clones \
             saved 14 s.\n\
             The job was done after 17 s, 3 s before its deadline of 20 s."
        );
    }

    #[test]
    fn without_another_run_the_pace_tells_what_was_saved() {
        let attempts = [
            attempt(5, 0, "n2", 0, None),
            attempt(5, 1, "n1", 6, Some(17)),
        ];
        let text = tell(&Told {
            attempts: &attempts,
            created: second(0),
            deadline: 20.0,
            without_clones: None,
            slow_node: None,
        });
        assert!(text.contains("at its pace until then the first attempt would have taken 120 s"));
        assert!(text.contains("Task 5 straggled on n2: "));
    }

    #[test]
    fn without_a_clone_that_won_there_is_no_straggler() {
        let attempts = [attempt(0, 0, "n1", 0, Some(25))];
        assert_eq!(
            told(&attempts),
            "No task was finished by a clone.\nThe job was done after 25 s, 5 s after its deadline of 20 s."
        );
    }
}
