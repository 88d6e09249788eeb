//! Kind and endpoint of a configured model, without secrets.

use crate::config::ModelSettings;

/// The kind as written in the configuration.
pub(in crate::cli) fn kind(settings: &ModelSettings) -> &'static str {
    match settings {
        ModelSettings::Http(http) => http.api.key(),
        ModelSettings::Scripted { .. } => "scripted",
        ModelSettings::Missing { .. } => "environment",
    }
}

/// The host and port of the provider, or the file of a scripted model.
pub(in crate::cli) fn place(settings: &ModelSettings) -> Option<String> {
    match settings {
        ModelSettings::Http(http) => Some(host(&http.settings.base_url)),
        ModelSettings::Scripted { file, .. } => Some(file.display().to_string()),
        ModelSettings::Missing { .. } => None,
    }
}

/// The host and port of a URL. The rest may contain credentials: user name, password and query.
pub(in crate::cli) fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_shows_host_and_port_and_no_secret() {
        for (url, shown) in [
            ("https://api.openai.com/v1", "api.openai.com"),
            ("http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
            ("https://me:secret@host.example/v1?key=secret", "host.example"),
            ("https://me:se@cret@host.example?key=secret", "host.example"),
            ("http://[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(host(url), shown, "{url}");
        }
    }
}
