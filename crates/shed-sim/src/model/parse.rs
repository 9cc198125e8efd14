//! `name{parameter=value,…}` → model.

use shed_core::settings::Parsed;

use super::Model;

pub(super) fn model(text: &str) -> Result<Model, String> {
    let mut parameters = Parsed::new(text)?;
    let name = parameters.name;
    let model = match name {
        "trace" => Model::Trace,
        "resample" => Model::Resample,
        "recorded" => Model::Recorded,
        "pareto" => Model::Pareto {
            beta: parameters.take_number("beta", 0.01, 1000.0)?.unwrap_or(1.5),
            t_min: parameters.take_number("t_min", 0.001, 1e9)?,
            max: parameters.take_number("max", 0.001, 1e9)?,
        },
        "fresh" => Model::Fresh {
            beta: parameters.take_number("beta", 0.01, 1000.0)?.unwrap_or(1.5),
            t_min: parameters
                .take_number("t_min", 0.001, 1e9)?
                .unwrap_or(120.0),
            own: parameters.take_number("own", 0.0, 1.0)?.unwrap_or(0.0),
        },
        "lognormal" => Model::LogNormal {
            sigma: parameters.take_number("sigma", 0.0, 5.0)?.unwrap_or(0.5),
        },
        _ => return Err(format!("unknown model `{name}`")),
    };
    if let Model::Pareto {
        t_min: Some(t_min),
        max: Some(max),
        ..
    } = model
        && max <= t_min
    {
        return Err(format!("max={max} is not above t_min={t_min}"));
    }
    parameters.none_left()?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use crate::model::Model;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "trace",
            "resample",
            "recorded",
            "pareto{beta=1.5}",
            "pareto{beta=2,t_min=120,max=600}",
            "fresh{beta=1.5,t_min=120,own=0.5}",
            "lognormal{sigma=0.25}",
        ] {
            assert_eq!(text.parse::<Model>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_error_names_the_fault_and_lists_what_is_valid() {
        for (text, fault) in [
            ("weibull", "unknown model `weibull`"),
            ("pareto{beta=0}", "beta=0 is not from 0.01 to 1000"),
            ("pareto{beta=1,beta=2}", "given twice"),
            ("pareto{gamma=1}", "`pareto` has no parameter `gamma`"),
            ("pareto{t_min=5,max=5}", "max=5 is not above t_min=5"),
            ("trace{x=1}", "`trace` has no parameter `x`"),
            ("pareto{beta", "lacks its `}`"),
        ] {
            let message = text.parse::<Model>().unwrap_err().to_string();
            assert!(message.contains(fault), "{message}");
            assert!(message.contains("`lognormal{sigma=0.5}`"), "{message}");
        }
    }
}
