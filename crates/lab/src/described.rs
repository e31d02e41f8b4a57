//! Policies as JSON, for programs and pages that list them.

use anysched_core::registry::PolicyInfo;
use serde_json::{Value, json};

/// What the registry says of a policy.
pub fn policy(policy: &PolicyInfo) -> Value {
    let params: Vec<Value> = (policy.params)()
        .iter()
        .map(|param| {
            json!({
                "name": param.name,
                "default": param.default,
                "values": param.kind,
                "doc": param.doc,
            })
        })
        .collect();
    json!({
        "name": policy.name,
        "summary": policy.summary,
        "source": policy.source,
        "clairvoyant": policy.clairvoyant,
        "rehearsed": (policy.nature)(&[]).is_ok_and(|nature| nature.rehearsed),
        "params": params,
    })
}
