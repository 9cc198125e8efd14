//! The encoding of a ledger's open tasks: a line of text per task, and tables for values that many
//! lines share. A task with one attempt takes about twenty bytes. Pure.
//!
//! A line is `INDEX,NEXT` and fields. Each attempt follows after a `;`, as `NUMBER KIND LAUNCHED`
//! (without the spaces) and fields. A field is a `,`, a letter and a value. Instants are
//! milliseconds from [`OpenTasks::since`]. Nodes, places, kills and points are positions in their
//! tables.
//!
//! Example: `17,2,f1;1r61500,n0` is task 17, whose next attempt is 2 and which has failed once.
//! Attempt 1, a retry launched after 61.5 s, runs at the first place. An unknown letter is kept and
//! written again. In the tables, a place is `NODE BOOT`, a kill `KIND,SINCE`, and a point
//! `PROGRESS,CHECKPOINT`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::hash::Hash;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use shed_core::snapshot::{AttemptKind, KillKind, ResumePoint};
use shed_core::time::{Instant, Span};

use super::{AttemptEntry, GrantEntry, NodeEntry, TaskEntry};
use crate::clock::{micro_instant, micro_time};

/// Maximum number of distinct kills. Attempts that are stopped one by one, and whose pods stay,
/// would each add one. Beyond this number a kill gets the time of the previous kill of its kind.
const KILLS_MAX: usize = 128;

/// Tasks with uncounted attempts or a history, ascending.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenTasks {
    /// Start of the instants in the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<MicroTime>,
    /// A line per task; src/api/ledger/compact.rs describes the encoding.
    #[serde(default)]
    lines: Vec<String>,
    /// Nodes to avoid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
    /// Nodes, each with its boot id, of attempts that must be proven gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<String>,
    /// Why shed must stop attempts, and since when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kills: Vec<String>,
    /// Index of the kill record that applies to all attempts whose line names none. One record
    /// stops a whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop: Option<usize>,
    /// Points to resume from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    points: Vec<String>,
}

/// For `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(
    tasks: &BTreeMap<u32, TaskEntry>,
    to: S,
) -> Result<S::Ok, S::Error> {
    OpenTasks::of(tasks).serialize(to)
}

/// Decodes it.
pub(super) fn deserialize<'de, D>(from: D) -> Result<BTreeMap<u32, TaskEntry>, D::Error>
where
    D: Deserializer<'de>,
{
    let open = OpenTasks::deserialize(from)?;
    let tasks = open.entries().map_err(D::Error::custom)?;
    Ok(tasks.into_iter().map(|task| (task.index, task)).collect())
}

/// Gives each value the position of its first occurrence.
struct Table<'t, T>(Vec<&'t T>, HashMap<&'t T, usize>);

impl<'t, T: Eq + Hash> Table<'t, T> {
    fn position(&mut self, value: &'t T) -> usize {
        *self.1.entry(value).or_insert_with(|| {
            self.0.push(value);
            self.0.len() - 1
        })
    }
}

impl<T> Default for Table<'_, T> {
    fn default() -> Self {
        Self(Vec::new(), HashMap::new())
    }
}

/// The tables while lines are written.
struct Writer<'t> {
    since: Instant,
    nodes: Table<'t, String>,
    places: Table<'t, NodeEntry>,
    kills: BTreeMap<(KillKind, Option<Instant>), usize>,
    stop: Option<usize>,
    points: Vec<&'t ResumePoint>,
    /// Number of them that belong to earlier tasks than the current one.
    points_before: usize,
}

impl OpenTasks {
    fn of(tasks: &BTreeMap<u32, TaskEntry>) -> Self {
        let attempts = || tasks.values().flat_map(|task| &task.attempts);
        let launched = attempts().map(|attempt| attempt.launched);
        let others = tasks.values().flat_map(|task| {
            let grant = task.grant.as_ref().map(|grant| grant.at);
            let at = [task.retry_not_before, task.clone_disrupted];
            at.into_iter().flatten().chain(grant)
        });
        let since = launched.chain(others).min();
        let mut writer = Writer {
            since: since.unwrap_or(Instant(0)),
            nodes: Table::default(),
            places: Table::default(),
            kills: BTreeMap::new(),
            stop: None,
            points: Vec::new(),
            points_before: 0,
        };
        writer.stop = writer.common_kill(attempts());
        let lines = tasks.values().map(|task| writer.line(task)).collect();
        let kills = writer.kill_table();
        Self {
            since: since.map(micro_time),
            lines,
            nodes: writer.nodes.0.into_iter().cloned().collect(),
            places: writer.places.0.into_iter().map(place).collect(),
            kills,
            stop: writer.stop,
            points: writer.points.into_iter().map(point).collect(),
        }
    }

    fn entries(&self) -> Result<Vec<TaskEntry>, String> {
        let read = |(number, line): (usize, &String)| {
            self.entry(line)
                .ok_or_else(|| format!("invalid line {number} of the tasks: {line:?}"))
        };
        self.lines.iter().enumerate().map(read).collect()
    }

    fn entry(&self, line: &str) -> Option<TaskEntry> {
        let mut parts = line.split(';');
        let mut fields = parts.next()?.split(',');
        let mut task = TaskEntry {
            index: number(fields.next()?)?,
            next_attempt: number(fields.next()?)?,
            ..TaskEntry::default()
        };
        for field in fields {
            let (letter, value) = split(field, 1)?;
            match letter {
                "w" => task.winner = Some(number(value)?),
                "f" => task.failures = number(value)?,
                "c" => task.clone_failures = number(value)?,
                "d" => task.disruptions = number(value)?,
                "x" => task.clone_disrupted = Some(self.instant(value)?),
                "b" => task.retry_not_before = Some(self.instant(value)?),
                "p" => task.resume = Some(Box::new(self.point(value)?)),
                "g" => task.grant = Some(Box::new(self.grant(value)?)),
                _ => task.unknown.push(field.to_owned()),
            }
        }
        for part in parts {
            // Most tasks have one attempt, and spare capacity in all these vectors would take more
            // memory than the attempts.
            task.attempts.reserve_exact(1);
            task.attempts.push(self.attempt(part)?);
        }
        Some(task)
    }

    fn attempt(&self, part: &str) -> Option<AttemptEntry> {
        let mut fields = part.split(',');
        let head = fields.next()?;
        let digits = head.bytes().take_while(u8::is_ascii_digit).count();
        let (named, launched) = split(head.get(digits..)?, 1)?;
        let mut attempt = AttemptEntry {
            number: number(head.get(..digits)?)?,
            kind: kind(named)?,
            launched: self.instant(launched)?,
            resume: None,
            avoid: Vec::new(),
            node: None,
            kill: None,
            killed_at: None,
            unknown: Vec::new(),
        };
        let mut killed = self.stop;
        for field in fields {
            let (letter, value) = split(field, 1)?;
            match letter {
                "p" => attempt.resume = Some(Box::new(self.point(value)?)),
                "n" => attempt.node = Some(Box::new(self.place(value)?)),
                "k" => killed = Some(number(value)?),
                "a" => {
                    let node = |at: &str| self.nodes.get(number::<usize>(at)?).cloned();
                    attempt.avoid = value.split('.').map(node).collect::<Option<_>>()?;
                }
                _ => attempt.unknown.push(field.to_owned()),
            }
        }
        if let Some(killed) = killed {
            let (kind, since) = self.kills.get(killed)?.split_once(',')?;
            attempt.kill = serde_json::from_value(kind.into()).ok();
            attempt.kill?;
            attempt.killed_at = Some(self.instant(since)?);
        }
        Some(attempt)
    }

    fn grant(&self, value: &str) -> Option<GrantEntry> {
        let mut parts = value.split('.');
        let grant = GrantEntry {
            attempt: number(parts.next()?)?,
            token: number(parts.next()?)?,
            at: self.instant(parts.next()?)?,
        };
        parts.next().is_none().then_some(grant)
    }

    fn point(&self, position: &str) -> Option<ResumePoint> {
        let text = self.points.get(number::<usize>(position)?)?;
        let (progress, checkpoint) = text.split_once(',')?;
        Some(ResumePoint {
            progress: number(progress)?,
            checkpoint: checkpoint.into(),
        })
    }

    fn place(&self, position: &str) -> Option<NodeEntry> {
        let text = self.places.get(number::<usize>(position)?)?;
        let (name, boot) = text.split_once(' ')?;
        Some(NodeEntry {
            name: name.to_owned(),
            boot: boot.to_owned(),
        })
    }

    fn instant(&self, value: &str) -> Option<Instant> {
        let since = self.since.as_ref().map_or(Instant(0), micro_instant);
        Some(since.plus(Span(number(value)?)))
    }
}

impl<'t> Writer<'t> {
    /// The kill that most attempts have, if all attempts have one.
    fn common_kill(&mut self, attempts: impl Iterator<Item = &'t AttemptEntry>) -> Option<usize> {
        let mut counts: Vec<usize> = Vec::new();
        for attempt in attempts {
            let position = self.kill(attempt)?;
            counts.resize(counts.len().max(position + 1), 0);
            counts[position] += 1;
        }
        let positions = 0..counts.len();
        positions.max_by_key(|&position| (counts[position], std::cmp::Reverse(position)))
    }

    fn kill(&mut self, attempt: &AttemptEntry) -> Option<usize> {
        let next = self.kills.len();
        let kill = (attempt.kill?, attempt.killed_at);
        if next >= KILLS_MAX
            && let Some(known) = self.known_kill(&kill)
        {
            return Some(known);
        }
        Some(*self.kills.entry(kill).or_insert(next))
    }

    /// The previous kill of that kind, or the first one.
    fn known_kill(&self, kill: &(KillKind, Option<Instant>)) -> Option<usize> {
        let before = self.kills.range(..=kill).next_back();
        let near = before.into_iter().chain(self.kills.range(kill..).next());
        let mut of_kind = near.filter(|((kind, _), _)| *kind == kill.0);
        of_kind.next().map(|(_, position)| *position)
    }

    /// The kills by their positions.
    fn kill_table(&self) -> Vec<String> {
        let mut kills: Vec<_> = self.kills.iter().collect();
        kills.sort_unstable_by_key(|(_, position)| **position);
        let since = |at: &Option<Instant>| at.map_or(0, |at| self.ms(at));
        let text = |((kind, at), _): (&(KillKind, _), _)| format!("{kind:?},{}", since(at));
        kills.into_iter().map(text).collect()
    }

    fn line(&mut self, task: &'t TaskEntry) -> String {
        self.points_before = self.points.len();
        let mut line = format!("{},{}", task.index, task.next_attempt);
        let count = |count: u32| (count > 0).then_some(i64::from(count));
        let numbers = [
            ('w', task.winner.map(i64::from)),
            ('f', count(task.failures)),
            ('c', count(task.clone_failures)),
            ('d', count(task.disruptions)),
            ('x', task.clone_disrupted.map(|at| self.ms(at))),
            ('b', task.retry_not_before.map(|at| self.ms(at))),
        ];
        for (letter, value) in numbers {
            push(&mut line, letter, value);
        }
        push(&mut line, 'p', self.point(task.resume.as_deref()));
        let grant = task.grant.as_ref();
        let grant = grant.map(|g| format!("{}.{}.{}", g.attempt, g.token, self.ms(g.at)));
        push(&mut line, 'g', grant);
        push_unknown(&mut line, &task.unknown);
        for attempt in &task.attempts {
            self.push_attempt(&mut line, attempt);
        }
        line
    }

    fn push_attempt(&mut self, line: &mut String, attempt: &'t AttemptEntry) {
        let (letter, launched) = (letter(attempt.kind), self.ms(attempt.launched));
        // Writing to a string can't fail.
        let _ = write!(line, ";{}{letter}{launched}", attempt.number);
        push(line, 'p', self.point(attempt.resume.as_deref()));
        let avoid = attempt.avoid.iter();
        let avoid = avoid.map(|node| self.nodes.position(node).to_string());
        let avoid = Some(avoid.collect::<Vec<_>>()).filter(|nodes| !nodes.is_empty());
        push(line, 'a', avoid.map(|nodes| nodes.join(".")));
        let place = attempt.node.as_deref();
        push(line, 'n', place.map(|node| self.places.position(node)));
        let kill = self.kill(attempt).filter(|kill| self.stop != Some(*kill));
        push(line, 'k', kill);
        push_unknown(line, &attempt.unknown);
    }

    /// A task and its attempts share a point.
    fn point(&mut self, point: Option<&'t ResumePoint>) -> Option<usize> {
        let point = point?;
        let own = self.points_before;
        let known = self.points[own..].iter().position(|known| *known == point);
        Some(known.map_or_else(
            || {
                self.points.push(point);
                self.points.len() - 1
            },
            |known| own + known,
        ))
    }

    fn ms(&self, at: Instant) -> i64 {
        at.since(self.since).0
    }
}

fn place(node: &NodeEntry) -> String {
    format!("{} {}", node.name, node.boot)
}

fn point(point: &ResumePoint) -> String {
    format!("{},{}", point.progress, point.checkpoint)
}

fn push(line: &mut String, letter: char, value: Option<impl fmt::Display>) {
    if let Some(value) = value {
        // Writing to a string can't fail.
        let _ = write!(line, ",{letter}{value}");
    }
}

fn push_unknown(line: &mut String, fields: &[String]) {
    for field in fields {
        line.push(',');
        line.push_str(field);
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn split(text: &str, at: usize) -> Option<(&str, &str)> {
    Some((text.get(..at)?, text.get(at..)?))
}

fn letter(kind: AttemptKind) -> char {
    match kind {
        AttemptKind::Original => 'o',
        AttemptKind::Clone => 'c',
        AttemptKind::Retry => 'r',
    }
}

fn kind(letter: &str) -> Option<AttemptKind> {
    match letter {
        "o" => Some(AttemptKind::Original),
        "c" => Some(AttemptKind::Clone),
        "r" => Some(AttemptKind::Retry),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
