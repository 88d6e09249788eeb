//! Media URL checks: the model's provider fetches media URLs, and a caller must not use it to reach a private network.
//!
//! Only the URL itself is checked. The model's provider resolves its host name; a name that is local by definition
//! counts as the address it stands for.

use std::net::IpAddr;

use reqwest::Url;
use toolgate_core::address::{AddressClass, AllowedClasses, is_localhost, normal_host, place};

/// Refuses a URL that the model's provider must not fetch. The error says why.
pub(crate) fn check(url: &str, hosts: AllowedClasses) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| format!("this is not a URL: {error}"))?;
    match parsed.scheme() {
        "data" => return Ok(()),
        "https" | "http" => {}
        scheme => return Err(format!("use an `https`, `http` or `data` URL, not `{scheme}:`")),
    }
    let host = normal_host(parsed.host_str().unwrap_or_default());
    if hosts.admits(class_of(&host)) {
        return Ok(());
    }
    Err(format!("`{host}` is not on the public internet; send the bytes as `data` instead"))
}

fn class_of(host: &str) -> AddressClass {
    if let Ok(address) = host.parse::<IpAddr>() {
        return place(address);
    }
    if is_localhost(host) {
        return AddressClass::Loopback;
    }
    let (_, top) = host.rsplit_once('.').unwrap_or(("", host));
    match top {
        // The host name of cloud metadata services.
        "internal" if host == "metadata.google.internal" => AddressClass::Forbidden,
        "internal" | "local" | "lan" => AddressClass::Private,
        _ if !host.contains('.') => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: AllowedClasses = AllowedClasses { loopback: true, private: true };

    #[test]
    fn only_public_and_data_urls_are_allowed() {
        let taken = |url| check(url, AllowedClasses::default()).is_ok();
        for fine in
            ["https://example.com/cat.png", "http://example.com/a", "data:image/png;base64,AAAA", "https://8.8.8.8/"]
        {
            assert!(taken(fine), "{fine}");
        }
        for wrong in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ftp://example.com/a",
            "blob:https://example.com/1",
            "cat.png",
            "",
            "http://169.254.169.254/latest/meta-data",
            "http://metadata.google.internal/",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]:80/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost:9000/",
            "http://a.localhost./",
            "http://10.1.2.3/",
            "http://intranet/",
            "https://minio.local/",
        ] {
            assert!(!taken(wrong), "{wrong}");
        }
    }

    #[test]
    fn private_hosts_need_configuration_and_metadata_is_refused() {
        for fine in ["http://127.0.0.1/", "http://localhost/", "http://10.1.2.3/", "http://minio:9000/a"] {
            assert!(check(fine, ALL).is_ok(), "{fine}");
        }
        for wrong in ["http://169.254.169.254/", "http://metadata.google.internal/", "file:///etc/passwd"] {
            assert!(check(wrong, ALL).is_err(), "{wrong}");
        }
    }
}
