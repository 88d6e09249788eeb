//! OpenTelemetry resource: the identity of this process in everything it exports.

use std::sync::LazyLock;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

/// A resource with that service name. Without one, the SDK reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
pub(crate) fn resource(service_name: Option<&str>) -> Resource {
    static INSTANCE: LazyLock<String> = LazyLock::new(|| uuid::Uuid::now_v7().to_string());
    // Two processes are two sources: their metrics add up.
    let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|all| all.contains("service.instance.id=")) {
        resource = resource.with_attribute(KeyValue::new("service.instance.id", INSTANCE.as_str()));
    }
    match service_name {
        Some(name) => resource.with_service_name(name.to_owned()).build(),
        None => resource.build(),
    }
}
