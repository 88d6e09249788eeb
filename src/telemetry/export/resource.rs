//! What the process is called in everything it exports.

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

/// A service of that name; without one, as `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say, which the SDK reads.
pub(in crate::telemetry) fn resource(service_name: Option<&str>) -> Resource {
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match service_name {
        Some(name) => resource.with_service_name(name.to_owned()).build(),
        None => resource.build(),
    }
}
