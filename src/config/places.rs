//! Places of settings whose errors only their adapters find: the schema of an answer, and the settings of a model.

use std::collections::BTreeMap;
use std::fmt;

use toolgate_core::id::{AgentName, ModelName};

use super::error::{ConfigError, Fault, Source};
use super::spanned::Location;

/// A setting that its adapter judges.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdapterSetting {
    Model(ModelName),
    OutputSchema(AgentName),
}

/// The places of such settings in their files.
#[derive(Clone, Default)]
pub struct Places(BTreeMap<AdapterSetting, (Source, Option<Location>)>);

impl Places {
    pub(super) fn insert(&mut self, setting: AdapterSetting, source: &Source, place: Option<Location>) {
        self.0.insert(setting, (source.clone(), place));
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// One error with the place of each of these settings, where its file is known; `Ok` if there are none.
    pub fn check(&self, reasons: impl IntoIterator<Item = (AdapterSetting, String)>) -> Result<(), ConfigError> {
        let fault = |(setting, reason): (AdapterSetting, String)| match self.0.get(&setting) {
            Some((source, place)) => Fault::new(reason).at(source, *place),
            None => Fault::new(reason),
        };
        ConfigError::check(reasons.into_iter().map(fault).collect())
    }
}

/// Without the files, which may hold secrets.
impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
