//! The cases of one formula or one decision: the cutoff load, Mantri, Dolly, delay assignment, the
//! flow example.

use serde_json::{Value, json};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_formulas::delay::delay_assignment;
use shed_formulas::example;
use shed_papers::formulas::dolly::{DollyLimits, DollyLoad, decide};
use shed_papers::formulas::load::{Service, cutoff};
use shed_papers::formulas::mantri::{Mantri, pays_blind, pays_known};

use super::state::positions;
use crate::case::{Case, float, numbers};

fn service(case: &Case) -> Service {
    Service {
        alpha: case.shape("alpha"),
        second_moment: case.input["k2"].as_f64(),
    }
}

pub fn load(case: &mut Case) {
    let service = service(case);
    let omega = case.number("omega");
    case.expect_all(&json!({
        "w_none": float(service.time_without_clones(omega)),
        "w_clone": float(service.time_with_clones(omega)),
        "omega_max": service.load_max(),
        "omega_u": service.cutoff_load(),
    }));
}

pub fn threshold(case: &mut Case) {
    let found = cutoff(
        &service(case),
        case.number("lambda"),
        case.number("tasks"),
        case.number("es"),
        case.number("machines"),
    );
    let found = found.expect("the mean is finite");
    case.expect_all(&json!({
        "omega": found.load,
        "omega_u": found.cutoff_load,
        "lambda_u": found.cutoff_arrivals,
        "machines_u": float(found.cutoff_machines),
        "light": found.is_light,
    }));
}

pub fn mantri(case: &mut Case) {
    let distribution = ParetoDistribution {
        t_min: case.number("mu"),
        beta: case.shape("alpha"),
    };
    let copies = case.count("copies");
    let mantri = Mantri {
        delta: case.number("delta"),
        ..Mantri::default()
    };
    let known = pays_known(&distribution, case.number("t_rem"), copies);
    let blind = pays_blind(&distribution, case.number("age"), copies);
    case.expect_all(&json!({
        "known": float(known),
        "blind": float(blind),
        "threshold": float(mantri.threshold(&distribution, copies)),
        "duplicate_known": mantri.duplicates(known, copies),
        "duplicate_blind": mantri.duplicates(blind, copies),
    }));
}

pub fn dolly(case: &mut Case) {
    let limits = DollyLimits {
        epsilon: case.number("eps"),
        utilisation_max: case.number("tau"),
        budget: case.number("beta"),
        tasks_max: case.input["small_max"].as_u64().map(|most| most as u32),
    };
    let load = DollyLoad {
        slots: case.count("slots").into(),
        utilisation: case.number("utilisation"),
        clones_in_use: case.count("clones_in_use").into(),
    };
    let decision = decide(case.count("n"), case.number("p"), &limits, &load);
    case.expect_all(&json!({ "copies": decision.copies, "wanted": decision.wanted }));
}

pub fn delay_assign(case: &mut Case) {
    let finish = numbers(&case.input["finish"], f64::INFINITY);
    let locality: Vec<u32> = positions(&case.input["locality"])
        .into_iter()
        .map(|level| level as u32)
        .collect();
    let downstream = case.count("downstream") as usize;
    let max_wait = case.input["max_wait"].as_f64();
    let found = delay_assignment(&finish, &locality, downstream, max_wait);
    let found = found.expect("there are upstream copies");
    case.expect_all(&json!({
        "release": found.release,
        "source": found.source,
        "killed": found.killed,
    }));
}

pub fn flow_example(case: &mut Case) {
    let flow = example::flow_example(case.shape("alpha"), case.count("n"));
    let flow = flow.map(|flow| {
        let [one, two, three] = [flow.all_at_once, flow.maximal_clones, flow.one_clone_each];
        json!({
            "flow1": one,
            "flow2": two,
            "flow3": three,
            "flow1_minus_flow2": one - two,
            "flow1_minus_flow3": one - three,
        })
    });
    case.expect_all(&flow.unwrap_or(Value::Null));
}
