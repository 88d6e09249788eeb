//! Typed environment variables. An invalid value is rejected by its name: the operator set it on purpose, and ignoring
//! it would do something else.

use super::SettingsError;

/// Looks variables up. An empty one counts as unset, as OpenTelemetry specifies.
#[derive(Clone, Copy)]
pub(crate) struct Variables<'a>(pub(crate) &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// The value, trimmed.
    pub(crate) fn text(self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// `true` or `false`, in any case.
    pub(crate) fn switch(self, name: &str) -> Result<Option<bool>, SettingsError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(SettingsError::Switch { name: name.to_owned(), value }),
        }
    }

    /// Whether OpenTelemetry is turned off as a whole.
    pub(crate) fn sdk_disabled(self) -> Result<bool, SettingsError> {
        Ok(self.switch("OTEL_SDK_DISABLED")?.unwrap_or_default())
    }

    /// Whether the environment names the service.
    pub(crate) fn name_the_service(self) -> bool {
        self.text("OTEL_SERVICE_NAME").is_some()
            || self.text("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="))
    }

    /// A whole number, at least `least`.
    pub(crate) fn number(self, name: &str, least: usize) -> Result<Option<usize>, SettingsError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.parse().ok().filter(|number| *number >= least) {
            Some(number) => Ok(Some(number)),
            None => Err(SettingsError::Number { name: name.to_owned(), value, least }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_are_rejected_by_name() {
        let env = |name: &str| Some(name.to_owned());
        let read = |value: &str, least| Variables(&env).number(value, least);
        assert_eq!(read("7", 7).ok(), Some(Some(7)));
        for value in ["6", "-1", "1.5", "many"] {
            let refused = read(value, 7).expect_err(value).to_string();
            assert!(refused.contains(&format!("{value} is `{value}`: give a whole number, at least 7")), "{refused}");
        }
    }
}
