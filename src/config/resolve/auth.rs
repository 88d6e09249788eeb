//! Resolves the authentication of an HTTP server.

use std::collections::BTreeMap;

use secrecy::SecretString;

use toolgate_settings::mcp::ClientProof;

use crate::access::{AuthSettings, ClientSettings};
use crate::error::Fault;
use crate::resolver::Resolver;
use crate::spanned::{Located, Text};
use crate::written::{Auth, ClientCredentials, OAuth};

const AUTHORIZATION: &str = "Authorization";

/// The authentication settings, and the headers to send.
pub(super) fn resolve(
    written: Option<&Located<Auth>>,
    headers: &mut BTreeMap<String, SecretString>,
    scope: &mut Resolver<'_>,
) -> AuthSettings {
    let has_header = headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION));
    let Some(written) = written else {
        return if has_header { AuthSettings::Headers } else { AuthSettings::default() };
    };
    if has_header {
        let fault = Fault::new("this server has both `auth` and a header `Authorization`");
        scope.fault(fault.with_remedy("remove one of the two"), written.place());
    }
    match written.value() {
        Auth::Bearer(token) => {
            let token = scope.text(token);
            headers.insert(AUTHORIZATION.into(), format!("Bearer {token}").into());
            AuthSettings::Headers
        }
        Auth::OAuth(oauth) => person(oauth, written, scope),
        Auth::ClientCredentials(client) => itself(client, written, scope),
    }
}

fn person(oauth: &OAuth, placed: &Located<Auth>, scope: &mut Resolver<'_>) -> AuthSettings {
    let client = match (&oauth.client_id, &oauth.client_secret) {
        (Some(id), secret) => {
            Some(ClientSettings { id: scope.text(id), secret: secret.as_ref().map(|secret| scope.secret(secret)) })
        }
        (None, Some(secret)) => {
            let fault = Fault::new("`client_secret` needs a `client_id`");
            scope.fault(fault.with_remedy("add its `client_id`"), secret.place().or(placed.place()));
            None
        }
        (None, None) => None,
    };
    AuthSettings::Person {
        client,
        scopes: scopes(oauth.scopes.as_ref(), scope),
        redirect_port: oauth.redirect_port.as_ref().map(|port| scope.at_least_one(Some(port), 1)),
        allow_private: oauth.allow_private.unwrap_or(false),
    }
}

fn itself(client: &ClientCredentials, placed: &Located<Auth>, scope: &mut Resolver<'_>) -> AuthSettings {
    let proof = match (&client.client_secret, &client.private_key_file) {
        (Some(secret), None) => ClientProof::Secret(scope.secret(secret)),
        (None, Some(file)) => {
            let path = scope.path(file);
            let pem = std::fs::read_to_string(&path).unwrap_or_else(|error| {
                let fault = Fault::new(format!("the key `{}` cannot be read: {error}", path.display()));
                scope.fault(fault.with_remedy("name a file with a private key in PEM"), file.place());
                String::new()
            });
            ClientProof::PrivateKey { pem: pem.into(), algorithm: client.algorithm.unwrap_or_default() }
        }
        (Some(_), Some(_)) | (None, None) => {
            let fault = Fault::new("client credentials are one of `client_secret` and `private_key_file`");
            scope.fault(fault.with_remedy("give one of the two"), placed.place());
            ClientProof::Secret(SecretString::default())
        }
    };
    AuthSettings::Client {
        id: scope.text(&client.client_id),
        proof,
        scopes: scopes(client.scopes.as_ref(), scope),
        allow_private: client.allow_private.unwrap_or(false),
    }
}

fn scopes(written: Option<&Vec<Text>>, scope: &mut Resolver<'_>) -> Vec<String> {
    written.into_iter().flatten().map(|one| scope.text(one)).collect()
}
