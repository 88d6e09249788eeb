//! What the process is called in everything it exports.

use std::sync::LazyLock;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

/// A service of that name; without one, as `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say, which the SDK reads.
pub(in crate::telemetry) fn resource(service_name: Option<&str>) -> Resource {
    static INSTANCE: LazyLock<String> = LazyLock::new(|| uuid::Uuid::now_v7().to_string());
    // Two processes are two sources: their figures add up.
    let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|all| all.contains("service.instance.id=")) {
        resource = resource.with_attribute(KeyValue::new("service.instance.id", INSTANCE.as_str()));
    }
    match service_name {
        Some(name) => resource.with_service_name(name.to_owned()).build(),
        None => resource.build(),
    }
}
