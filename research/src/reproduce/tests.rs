use indicatif::ProgressBar;

use shed_formulas::closed_forms;

use super::findings::Line;
use super::lab::{Lab, Scale};
use super::{find, known};

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
fn the_closed_forms_of_every_group_are_on_the_page() {
    let bar = ProgressBar::hidden();
    let mut lab = Lab::new(scale(), &bar);
    let mut references = 0;
    for group in closed_forms::GROUPS {
        let [(_, figure)] = find(group.id)[..] else {
            panic!("{} is a figure", group.id);
        };
        let findings = figure.make(&mut lab).unwrap();
        let pictured: usize = findings.series.iter().map(|series| series.rows.len()).sum();
        let rows = findings.lines.len() + findings.references.len() + pictured;
        assert_eq!(rows, closed_forms::of(group.id).len(), "{}", group.id);
        references += findings.references.len();
    }
    assert_eq!(references, 194);
}

#[test]
fn every_variant_has_an_effect_on_every_value_that_differs() {
    shed_sim::policies::install(shed_papers::registry());
    let bar = ProgressBar::hidden();
    let mut lab = Lab::new(scale(), &bar);
    for name in ["S-3", "P-4", "S4"] {
        let [(_, figure)] = find(name)[..] else {
            panic!("one figure has this name");
        };
        let findings = figure.make(&mut lab).unwrap();
        let Some(causes) = findings.causes else {
            continue;
        };
        assert!(
            causes
                .rows
                .iter()
                .all(|row| row.effects.len() == causes.variants.len())
        );
        for row in &causes.rows {
            assert!(
                row.effects
                    .iter()
                    .all(|effect| effect.difference.0.len() == 2)
            );
        }
    }
}

#[test]
fn a_figure_repeats_on_the_same_seeds_and_differs_on_others() {
    shed_sim::policies::install(shed_papers::registry());
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
