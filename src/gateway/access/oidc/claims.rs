//! Claims of a token: who the caller is, its tenant, and its scopes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_core::id::{Principal, Tenant};
use toolgate_service::{Caller, Scope, Scopes};

/// Which claims to read.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The claim with the scopes, as a space-separated string or as a list.
    pub scope: String,
    /// The claim with the tenant. `None`: all callers belong to the one tenant of the program.
    pub tenant: Option<String>,
    /// The scopes that each value of the scope claim grants. `None`: the values are scopes themselves, and unknown ones
    /// are ignored.
    pub scopes_of: Option<BTreeMap<String, Scopes>>,
}

impl Default for Claims {
    fn default() -> Self {
        Self { scope: "scope".to_owned(), tenant: None, scopes_of: None }
    }
}

impl Claims {
    /// The caller with these claims.
    pub(super) fn caller(&self, claims: &Map<String, Value>) -> Result<Caller, &'static str> {
        let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| is_printable(subject));
        let subject = subject.ok_or("it has no usable subject")?;
        let tenant = match &self.tenant {
            None => Tenant::default(),
            Some(claim) => {
                let tenant = claims.get(claim).and_then(Value::as_str).filter(|tenant| is_printable(tenant));
                tenant.ok_or("it has no tenant")?.into()
            }
        };
        Ok(Caller {
            tenant,
            name: format!("user:{subject}").into(),
            principal: Some(Principal::from(subject)),
            scopes: self.scopes(claims.get(&self.scope)),
        })
    }

    fn scopes(&self, claim: Option<&Value>) -> Scopes {
        let named: Vec<&str> = match claim {
            Some(Value::String(text)) => text.split_whitespace().collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        };
        match &self.scopes_of {
            None => named.into_iter().filter_map(Scope::parse).collect(),
            Some(table) => {
                named.into_iter().filter_map(|name| table.get(name)).flat_map(|scopes| scopes.iter()).collect()
            }
        }
    }
}

/// The subject appears in journals, logs and lists.
fn is_printable(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(claims: &Claims, value: &Value) -> Result<Caller, &'static str> {
        claims.caller(value.as_object().unwrap())
    }

    #[test]
    fn claims_identify_the_caller_and_its_scopes() {
        let claims = Claims::default();
        let ann = read(&claims, &json!({"sub": "ann", "scope": "openid runs:read email runs:write"})).unwrap();
        assert_eq!((ann.name.as_ref(), ann.tenant.is_default()), ("user:ann", true));
        assert_eq!(ann.scopes, [Scope::RunsRead, Scope::RunsWrite].into_iter().collect());
        assert_eq!(read(&claims, &json!({"sub": "ann"})).unwrap().scopes, Scopes::default());
        for wrong in [json!({}), json!({"sub": ""}), json!({"sub": 5}), json!({"sub": "a\nb"})] {
            assert!(read(&claims, &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_table_maps_groups_to_scopes_and_ignores_others() {
        let table = BTreeMap::from([("ops".to_owned(), Scopes::all())]);
        let claims = Claims { scope: "groups".into(), tenant: Some("org".into()), scopes_of: Some(table) };
        let ann = read(&claims, &json!({"sub": "ann", "org": "acme", "groups": ["ops", "x"]})).unwrap();
        assert_eq!((ann.tenant.as_str(), ann.scopes), ("acme", Scopes::all()));
        let bob = read(&claims, &json!({"sub": "bob", "org": "acme", "groups": ["admin"], "scope": "admin"})).unwrap();
        assert_eq!(bob.scopes, Scopes::default());
        assert!(read(&claims, &json!({"sub": "ann", "groups": ["ops"]})).is_err(), "no tenant is guessed");
    }
}
