//! Progress reports that the SDK cannot type: numbers as text, and whole numbers with a fraction. A report keeps its call
//! alive, so it must not be lost.

use rmcp::model::ServerNotification;
use serde_json::{Value, json};

use super::salvage::request_id;

const METHOD: &str = "notifications/progress";

/// The report, if the notification is one.
pub(super) fn typed(method: &str, params: Option<&Value>) -> Option<ServerNotification> {
    let params = params.filter(|_| method == METHOD)?;
    let number = |name: &str| match params.get(name)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse::<f64>().ok().filter(|number| number.is_finite()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let report = json!({
        "progressToken": request_id(params.get("progressToken")?)?,
        "progress": number("progress")?,
        "total": number("total"),
        "message": params.get("message").and_then(Value::as_str),
    });
    serde_json::from_value(json!({"method": METHOD, "params": report})).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_with_numbers_in_another_notation_is_read() {
        for params in [
            json!({"progressToken": 3.0, "progress": "50", "total": "100"}),
            json!({"progressToken": "3", "progress": 50, "total": null, "message": 7}),
        ] {
            let read = typed(METHOD, Some(&params)).expect("a report");
            let ServerNotification::ProgressNotification(report) = read else { panic!("{params}") };
            assert_eq!(report.params.progress.to_string(), "50", "{params}");
        }
        for params in [json!({"progress": 1}), json!({"progressToken": 3, "progress": "soon"}), json!([])] {
            assert!(typed(METHOD, Some(&params)).is_none(), "{params}");
        }
        assert!(typed("notifications/x", Some(&json!({"progressToken": 3, "progress": 1}))).is_none());
    }
}
