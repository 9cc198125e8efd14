use indicatif::ProgressBar;

use super::findings::{Line, Verdict};
use super::lab::{Lab, Scale};
use super::{PAPERS, find, known};

fn scale() -> Scale {
    Scale {
        seed: 3,
        seeds: 2,
        jobs: 0.1,
        traces: None,
        threads: 2,
    }
}

#[test]
fn the_closed_forms_are_those_of_the_papers() {
    let bar = ProgressBar::hidden();
    let mut lab = Lab::new(scale(), &bar);
    let mut anchors = 0;
    for paper in PAPERS {
        let models = paper
            .figures
            .iter()
            .filter(|figure| figure.id.ends_with("model"));
        for figure in models {
            let findings = figure.make(&mut lab).unwrap();
            for line in &findings.lines {
                let ours = line.ours.mean();
                assert_eq!(
                    line.verdict(),
                    Verdict::Holds,
                    "{}: {} is {ours}",
                    figure.id,
                    line.what
                );
            }
            for gate in &findings.gates {
                assert_eq!(
                    gate.verdict(),
                    Verdict::Holds,
                    "{}: {}",
                    figure.id,
                    gate.claim
                );
            }
            anchors += findings.lines.len();
        }
    }
    assert!(anchors >= 40, "{anchors} anchors");
}

#[test]
fn a_figure_repeats_on_the_same_seeds_and_differs_on_others() {
    let bar = ProgressBar::hidden();
    let ours = |scale: Scale| {
        let [(_, figure)] = find("p-6")[..] else {
            panic!("one figure has this name");
        };
        let findings = figure.make(&mut Lab::new(scale, &bar)).unwrap();
        let lines = findings.lines.into_iter();
        lines.map(|Line { ours, .. }| ours).collect::<Vec<_>>()
    };
    let first = ours(scale());
    assert_eq!(first, ours(scale()));
    assert_ne!(
        first,
        ours(Scale {
            seed: 50,
            ..scale()
        })
    );
}

#[test]
fn every_figure_has_a_name_of_its_own_and_is_found_by_it() {
    let all = find("all");
    assert!(all.len() > 5);
    for (paper, figure) in &all {
        assert_eq!(find(figure.id).len(), 1, "{}", figure.id);
        assert!(find(paper.id).len() > 1 || paper.figures.len() == 1);
        assert!(known().contains(figure.id) && known().contains(paper.id));
    }
    assert!(find("Fig. 99").is_empty());
}
