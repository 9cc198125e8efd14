//! The security context of the agent's container: the default, a setting of the operator, and what a pod makes of it.

use k8s_openapi::api::core::v1::{
    Capabilities, PodSecurityContext, SeccompProfile, SecurityContext,
};
use serde::Deserialize as _;
use serde_json::Value;

/// The user of shed's image.
const IMAGE_USER: i64 = 65532;
/// The largest user or group id that the apiserver accepts.
const ID_MAX: i64 = 2_147_483_647;
const PROFILE_TYPES: [&str; 3] = ["RuntimeDefault", "Localhost", "Unconfined"];

/// What the Pod Security level `restricted` requires. No user is set: the agent works as any user, and OpenShift's
/// `restricted-v2` sets the user of the namespace and refuses others.
pub fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..SecurityContext::default()
    }
}

/// Reads a container's security context from JSON.
///
/// # Errors
/// The text is not a security context, or the apiserver or the kubelet would refuse each pod with it.
pub fn parse(text: &str) -> Result<SecurityContext, String> {
    let given: Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if !given.is_object() {
        return Err("it is not a JSON object, such as {\"runAsUser\": 1000}".to_owned());
    }
    let context = SecurityContext::deserialize(&given).map_err(|error| error.to_string())?;
    let known = serde_json::to_value(&context).map_err(|error| error.to_string())?;
    if let Some(path) = unknown_field(&given, &known) {
        return Err(format!("unknown field {path}"));
    }
    check(&context)?;
    Ok(context)
}

/// The first field that has a value in `given` and none in `known`.
fn unknown_field(given: &Value, known: &Value) -> Option<String> {
    let fields = given.as_object()?.iter();
    fields
        .filter(|(_, value)| !value.is_null())
        .find_map(|(name, value)| match known.get(name) {
            None => Some(name.clone()),
            Some(known) => unknown_field(value, known).map(|path| format!("{name}.{path}")),
        })
}

fn check(context: &SecurityContext) -> Result<(), String> {
    let ids = [
        ("runAsUser", context.run_as_user),
        ("runAsGroup", context.run_as_group),
    ];
    for (name, id) in ids {
        if let Some(id) = id.filter(|id| !(0..=ID_MAX).contains(id)) {
            return Err(format!("{name}: {id} is not between 0 and {ID_MAX}"));
        }
    }
    if context.run_as_non_root == Some(true) && context.run_as_user == Some(0) {
        return Err(
            "runAsUser: 0 is root, but runAsNonRoot is true; remove runAsUser, because the agent needs no user of \
             its own"
                .to_owned(),
        );
    }
    if context.privileged == Some(true) && context.allow_privilege_escalation == Some(false) {
        return Err(
            "privileged: true contradicts allowPrivilegeEscalation: false; remove privileged, which the agent does \
             not need"
                .to_owned(),
        );
    }
    let seccomp = context.seccomp_profile.as_ref();
    let app_armor = context.app_armor_profile.as_ref();
    let profiles = [
        ("seccompProfile", seccomp.map(|profile| &profile.type_)),
        ("appArmorProfile", app_armor.map(|profile| &profile.type_)),
    ];
    for (name, type_) in profiles {
        if let Some(type_) = type_.filter(|type_| !PROFILE_TYPES.contains(&type_.as_str())) {
            let types = PROFILE_TYPES.join(", ");
            return Err(format!("{name}.type: {type_:?} is not one of {types}"));
        }
    }
    Ok(())
}

/// The context in a pod. Where the template runs its pod as root, the kubelet would refuse an agent that must not be
/// root, so the agent gets the user of its image.
pub fn in_pod(context: &SecurityContext, pod: Option<&PodSecurityContext>) -> SecurityContext {
    let mut context = context.clone();
    let is_root = pod.is_some_and(|pod| pod.run_as_user == Some(0));
    if is_root && context.run_as_non_root == Some(true) && context.run_as_user.is_none() {
        context.run_as_user = Some(IMAGE_USER);
    }
    context
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err()
    }

    #[test]
    fn the_default_is_restricted_and_sets_no_id() {
        let context = serde_json::to_value(restricted()).unwrap();
        assert_eq!(
            context,
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
        );
        assert_eq!(parse(&context.to_string()).unwrap(), restricted());
    }

    #[test]
    fn a_context_is_read_whole() {
        let text = r#"{"runAsUser": 1000740000, "runAsGroup": null, "seLinuxOptions": {"level": "s0:c27,c4"}}"#;
        let context = parse(text).unwrap();
        assert_eq!(context.run_as_user, Some(1_000_740_000));
        assert_eq!(context.run_as_non_root, None, "nothing is added");
        let level = context.se_linux_options.unwrap().level;
        assert_eq!(level.as_deref(), Some("s0:c27,c4"));
        assert_eq!(parse("{}").unwrap(), SecurityContext::default());
    }

    #[test]
    fn a_wrong_context_is_refused_with_its_field() {
        assert!(refusal("runAsUser: 1").starts_with("it is not JSON: "));
        assert!(refusal("[]").starts_with("it is not a JSON object"));
        assert_eq!(refusal(r#"{"runAsUsr": 1}"#), "unknown field runAsUsr");
        assert_eq!(
            refusal(r#"{"capabilities": {"drops": ["ALL"]}}"#),
            "unknown field capabilities.drops"
        );
        assert!(refusal(r#"{"runAsUser": "me"}"#).contains("invalid type: string \"me\""));
        assert_eq!(
            refusal(r#"{"runAsUser": -1}"#),
            "runAsUser: -1 is not between 0 and 2147483647"
        );
        assert_eq!(
            refusal(r#"{"seccompProfile": {"type": "Default"}}"#),
            "seccompProfile.type: \"Default\" is not one of RuntimeDefault, Localhost, Unconfined"
        );
        let root = refusal(r#"{"runAsUser": 0, "runAsNonRoot": true}"#);
        assert!(root.starts_with("runAsUser: 0 is root"), "{root}");
        let privileged = refusal(r#"{"privileged": true, "allowPrivilegeEscalation": false}"#);
        assert!(privileged.starts_with("privileged: true contradicts"));
    }

    #[test]
    fn only_a_pod_that_runs_as_root_gives_the_agent_a_user() {
        // The agent's user in a pod whose template sets this one.
        let user = |context: &SecurityContext, of_pod| {
            let pod = PodSecurityContext {
                run_as_user: of_pod,
                ..PodSecurityContext::default()
            };
            in_pod(context, Some(&pod)).run_as_user
        };
        assert_eq!(in_pod(&restricted(), None), restricted());
        assert_eq!(user(&restricted(), None), None);
        assert_eq!(user(&restricted(), Some(1000)), None);
        assert_eq!(user(&restricted(), Some(0)), Some(IMAGE_USER));
        let own = parse(r#"{"runAsNonRoot": true, "runAsUser": 7}"#).unwrap();
        assert_eq!(user(&own, Some(0)), Some(7));
        let any = SecurityContext::default();
        assert_eq!(user(&any, Some(0)), None, "it may be root");
    }
}
