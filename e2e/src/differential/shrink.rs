//! The smallest part of a case that still makes a difference.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::case::{Case, OnDelete};

/// How often something is left out of a case, each time the best of all that can be left out.
const ROUNDS: usize = 16;

/// Leaves out acts and fields of a case as long as one of the remaining ones `differs`.
pub async fn shrink<F>(mut case: Case, differs: F) -> Result<Case>
where
    F: AsyncFn(&[Case]) -> Result<Vec<bool>>,
{
    for _ in 0..ROUNDS {
        let smaller = smaller(&case);
        let found = differs(&smaller).await?;
        let Some(best) = smaller
            .into_iter()
            .zip(found)
            .find_map(|(case, is)| is.then_some(case))
        else {
            break;
        };
        case = best;
    }
    Ok(case)
}

/// The case with one thing less each, most likely ones first.
fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let half = case.acts.len() / 2;
    if half > 0 {
        all.push(Case {
            acts: case.acts[..half].to_vec(),
            ..case.clone()
        });
        all.push(Case {
            acts: case.acts[half..].to_vec(),
            ..case.clone()
        });
    }
    for position in 0..case.acts.len() {
        let mut acts = case.acts.clone();
        acts.remove(position);
        all.push(Case {
            acts,
            ..case.clone()
        });
    }
    if case.held {
        all.push(Case {
            held: false,
            ..case.clone()
        });
    }
    if case.on_delete != OnDelete::Killed {
        all.push(Case {
            on_delete: OnDelete::Killed,
            ..case.clone()
        });
    }
    all.extend(smaller_specs(&case.spec).into_iter().map(|spec| Case {
        spec,
        ..case.clone()
    }));
    for (number, smaller) in all.iter_mut().enumerate() {
        let name = case.name.split("-x").next().unwrap_or_default();
        smaller.name = format!("{name}-x{number}");
    }
    all
}

fn smaller_specs(spec: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut without = |path: &str, kept: &[&str]| {
        let keys = spec.pointer(path).and_then(Value::as_object).map(Map::keys);
        for key in keys
            .into_iter()
            .flatten()
            .filter(|key| !kept.contains(&key.as_str()))
        {
            let mut spec = spec.clone();
            let fields = spec.pointer_mut(path).and_then(Value::as_object_mut);
            drop(fields.and_then(|fields| fields.remove(key)));
            all.push(spec);
        }
    };
    without("", &["template"]);
    without("/template/spec", &["containers", "restartPolicy"]);
    without("/template", &["spec"]);
    without("/template/spec/containers/0", &["name", "image"]);
    for list in ["/template/spec/containers", "/template/spec/initContainers"] {
        let containers = spec.pointer(list).and_then(Value::as_array);
        if let Some([first, _, ..]) = containers.map(Vec::as_slice) {
            let mut spec = spec.clone();
            if let Some(containers) = spec.pointer_mut(list) {
                *containers = json!([first]);
                all.push(spec);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::case::{Act, End};
    use super::*;

    #[tokio::test]
    async fn what_makes_the_difference_is_left() {
        let case = Case {
            name: "s1-1".to_owned(),
            on_delete: OnDelete::Linger,
            held: true,
            spec: json!({"completions": 3, "parallelism": 2, "suspend": true, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never",
                "hostname": "fixed", "containers": [{"name": "main", "env": []}, {"name": "second"}]}}}),
            acts: vec![
                Act::Resume,
                Act::End {
                    pod: 0,
                    end: End::Error,
                },
                Act::Suspend,
                Act::Release,
            ],
        };
        let differs = async |cases: &[Case]| {
            let is_so =
                |case: &Case| case.acts.contains(&Act::Suspend) && case.spec["parallelism"] == 2;
            Ok(cases.iter().map(is_so).collect())
        };
        let small = shrink(case, differs).await.unwrap();
        assert_eq!(small.acts, [Act::Suspend]);
        let left = json!({"parallelism": 2, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main"}]}}});
        assert_eq!(
            (small.spec, small.held, small.on_delete),
            (left, false, OnDelete::Killed)
        );
    }
}
