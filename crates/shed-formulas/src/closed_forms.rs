//! The closed forms that the page of the reproduction lists, each next to the value that it is compared with.
//!
//! Few of these values are printed in a paper. The others are from this project's specification, which computed them
//! by another program from the papers' equations. The laboratory writes the page
//! (`docs/research/reproduction.md`), and a test of this crate compares the page with a fresh computation.
//!
//! A file per paper, with a function per figure.

mod dollymp;
mod laser;
mod sca;
mod shed;

/// Where the value comes from that ours is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// The paper prints it.
    Printed {
        /// Figure, table or section of the paper.
        source: &'static str,
        /// The printed value.
        value: f64,
        /// The largest difference that still agrees.
        tolerance: f64,
    },
    /// The paper prints an upper bound, or words that this bound reads.
    AtMost {
        /// Figure, table or section of the paper.
        source: &'static str,
        /// The bound.
        most: f64,
    },
    /// This project's specification has it.
    Specified {
        /// The specified value.
        value: f64,
        /// The largest difference that still agrees.
        tolerance: f64,
    },
    /// The paper has it in a picture only.
    Pictured,
}

impl Expected {
    /// Whether `ours` agrees. Everything agrees with a picture, except nothing at all.
    pub fn agrees(self, ours: f64) -> bool {
        match self {
            Self::Printed {
                value, tolerance, ..
            }
            | Self::Specified { value, tolerance } => (ours - value).abs() <= tolerance,
            Self::AtMost { most, .. } => ours <= most,
            Self::Pictured => !ours.is_nan(),
        }
    }
}

/// A closed form's value.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedForm {
    /// The measure, with its unit.
    pub what: String,
    /// What it is compared with.
    pub expected: Expected,
    /// As computed here; NaN if it could not be computed.
    pub ours: f64,
}

impl ClosedForm {
    fn specified(what: String, value: f64, ours: f64, tolerance: f64) -> Self {
        let expected = Expected::Specified { value, tolerance };
        Self {
            what,
            expected,
            ours,
        }
    }
}

/// The closed forms of a figure.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The figure's name on the page.
    pub id: &'static str,
    /// Computes them.
    pub make: fn() -> Vec<ClosedForm>,
}

/// All of them, in the order of the page.
pub const GROUPS: &[Group] = &[
    Group {
        id: "S-model",
        make: shed::theorem_1_and_dolly,
    },
    Group {
        id: "P-model",
        make: shed::theta,
    },
    Group {
        id: "P-clones",
        make: shed::figure_2,
    },
    Group {
        id: "L-model",
        make: laser::best_extra,
    },
    Group {
        id: "S1-model",
        make: sca::figure_1,
    },
    Group {
        id: "S2-model",
        make: sca::cutoffs,
    },
    Group {
        id: "S5-model",
        make: sca::figure_5,
    },
    Group {
        id: "D-model",
        make: dollymp::speedups,
    },
    Group {
        id: "D2-model",
        make: dollymp::figure_2,
    },
];

/// The closed forms of a figure; empty for another name.
pub fn of(id: &str) -> Vec<ClosedForm> {
    let group = GROUPS.iter().find(|group| group.id == id);
    group.map_or_else(Vec::new, |group| (group.make)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_closed_form_agrees_but_the_cutoff_of_another_shape() {
        let mut differing = Vec::new();
        for group in GROUPS {
            let forms = of(group.id);
            assert!(!forms.is_empty(), "{}", group.id);
            for form in forms {
                if !form.expected.agrees(form.ours) {
                    differing.push(form.what);
                }
            }
        }
        // The paper gives no shape for its trace: 6000 machines need 1.633.
        assert_eq!(differing, ["machines at the cutoff, M^U, at α 2"]);
        assert!(of("S-9").is_empty());
    }

    #[test]
    fn a_value_agrees_within_its_tolerance_and_a_bound_from_below() {
        let printed = Expected::Printed {
            source: "Figure 5",
            value: 1.7,
            tolerance: 0.05,
        };
        let most = Expected::AtMost {
            source: "Figure 2",
            most: 5.0,
        };
        for (expected, ours, agrees) in [
            (printed, 1.74, true),
            (printed, 1.76, false),
            (printed, f64::NAN, false),
            (most, 5.0, true),
            (most, 5.1, false),
            (Expected::Pictured, 9.0, true),
            (Expected::Pictured, f64::NAN, false),
        ] {
            assert_eq!(expected.agrees(ours), agrees, "{expected:?} {ours}");
        }
    }
}
