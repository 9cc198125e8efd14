//! Recordings of passes that look only at jobs with news.

use shed_core::decide::Changed;
use shed_core::guard::GuardedPlanner;
use shed_core::snapshot::JobSnapshot;

use super::*;
use crate::Replayer;

/// A planner that looks at every job only if it must.
#[derive(Default)]
struct Run {
    planner: GuardedPlanner,
    memory: Memory,
    before: Snapshot,
    /// Passes that relied on the pass before.
    incremental: u32,
}

impl Run {
    /// A pass, and its marks unless it looked at every job.
    fn pass(&mut self, snapshot: Snapshot, is_full: bool) -> (Pass, Option<Vec<bool>>) {
        let known = |job: &JobSnapshot| self.before.jobs.contains(job);
        let marks: Vec<bool> = snapshot.jobs.iter().map(|job| !known(job)).collect();
        let positions = (0..marks.len()).filter(|at| marks[*at]).collect();
        let (basis, changed) = match is_full {
            true => (Basis::Memory(Box::new(self.memory.clone())), Changed::All),
            false => (Basis::PassBefore(positions), Changed::Marked(&marks)),
        };
        self.incremental += u32::from(!is_full);
        let policy = Policy::default();
        let passed = self
            .planner
            .decide(&snapshot, &mut self.memory, &policy, changed);
        self.before = snapshot.clone();
        let pass = Pass {
            plan: passed.plan,
            decided: Decided::after(passed.panics),
            snapshot,
            basis,
            restated: None,
            names: BTreeMap::new(),
        };
        (pass, (!is_full).then_some(marks))
    }
}

/// Replays a recording: the number of its passes, and of those that are missing.
#[track_caller]
fn replayed(path: &Path) -> (u64, u64) {
    let mut reader = Reader::open(path).unwrap();
    let (mut replayer, mut seen, mut gaps): (Option<Replayer>, _, _) = (None, 0, 0);
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::File(header, _) => {
                replayer = Some(Replayer::new(header.memory));
                gaps += header.lost;
            }
            Item::Gap(gap) => {
                gaps += gap.passes;
                replayer.as_mut().unwrap().skip(*gap);
            }
            Item::Pass {
                number,
                changed,
                decided,
                plan,
                ..
            } => {
                assert_eq!(number, seen + gaps);
                let replayer = replayer.as_mut().unwrap();
                let policy = Policy::default();
                let again = replayer.pass(reader.snapshot(), &policy, changed.as_deref(), decided);
                assert_eq!(recorded_plan(again), *plan, "pass {number}");
                seen += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    (seen, gaps)
}

#[test]
fn incremental_passes_replay_across_files_and_gaps() {
    let folder = Folder::new("incremental");
    let policy = Policy::default();
    let mut writer = Writer::new(&folder.0, 256 << 10, &policy, at(0.0));
    let (mut run, mut lost) = (Run::default(), 0);
    for step in 0..300 {
        let is_full = writer.needs_full_pass();
        let (pass, _) = run.pass(snapshot(step % 40, 3, 0.1), is_full);
        if step % 50 == 49 {
            writer.lose(1);
            lost += 1;
        } else {
            assert!(writer.pass(pass).unwrap());
        }
    }
    writer.finish().unwrap();
    let files = files::list(&folder.0).unwrap();
    assert!(files.len() > 3 && files[0].number == 0, "{files:?}");
    assert_eq!(u64::from(run.incremental), 300 - files.len() as u64 - 5);
    // The last pass is lost, and no later one reports it.
    assert_eq!(replayed(&folder.0), (300 - lost, lost - 1));
}

#[test]
fn a_memory_that_was_changed_between_passes_is_restated() {
    let folder = Folder::new("restated");
    let policy = Policy::default();
    let mut writer = Writer::new(&folder.0, 1 << 30, &policy, at(0.0));
    let mut run = Run::default();
    for step in 0..30 {
        let is_changed = step % 7 == 6;
        if is_changed {
            run.memory = Memory::default();
        }
        let before = run.memory.clone();
        let (mut pass, _) = run.pass(snapshot(step, 3, 0.1), writer.needs_full_pass());
        pass.restated = is_changed.then_some(before);
        assert!(writer.pass(pass).unwrap());
    }
    writer.finish().unwrap();
    assert_eq!(run.incremental, 29);
    assert_eq!(replayed(&folder.0), (30, 0));
}

#[test]
fn a_pass_that_relies_on_a_lost_one_is_lost() {
    let folder = Folder::new("relies");
    let policy = Policy::default();
    let mut writer = Writer::new(&folder.0, 1 << 30, &policy, at(0.0));
    let mut run = Run::default();
    let mut write = |step, is_full, loses| {
        let (pass, _) = run.pass(snapshot(step, 3, 0.1), is_full);
        writer.lose(loses);
        (writer.pass(pass).unwrap(), writer.needs_full_pass())
    };
    assert_eq!(write(0, false, 0), (false, true), "nothing comes before it");
    assert_eq!(write(1, true, 0), (true, false));
    assert_eq!(write(2, false, 0), (true, false));
    assert_eq!(write(3, false, 1), (false, true));
    assert_eq!(write(4, false, 0), (false, true));
    assert_eq!(write(5, true, 0), (true, false));
    writer.finish().unwrap();
    assert_eq!(replayed(&folder.0), (3, 4));
}

#[test]
fn what_a_recorder_loses_is_a_gap_in_the_right_place() {
    let folder = Folder::new("gaps");
    let policy = Policy::default();
    let lost = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lost);
    let recorder = Recorder::start(&folder.0, 1 << 30, &policy, at(0.0), move |fault| {
        assert!(matches!(fault, Fault::Lost), "{fault:?}");
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let recorder = recorder.unwrap();
    let (mut run, count) = (Run::default(), 3000);
    for step in 0..count {
        let needs_full_pass = recorder.needs_full_pass();
        recorder.pass(run.pass(snapshot(step % 40, 3, 0.1), needs_full_pass).0);
    }
    recorder.finish();
    let (seen, gaps) = replayed(&folder.0);
    assert!(run.incremental > 0, "no pass relies on the one before");
    // A loss at the very end has no later pass that could report it.
    assert!(seen + gaps <= u64::from(count) && seen > 0);
    assert!(gaps <= lost.load(Ordering::Relaxed));
    assert_eq!(seen + lost.load(Ordering::Relaxed), u64::from(count));
}
