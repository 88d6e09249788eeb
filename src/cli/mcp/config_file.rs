//! Configuration file that `mcp add` and `mcp remove` change. The new text is loaded before it replaces the file: one that
//! cannot be read must not be written.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::error::CliError;
use crate::cli::setup::{self, ConfigFlag};
use crate::config::{FILE_NAME, Settings};

/// The file as it is.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) settings: Settings,
}

/// The file as it will be, beside the present one.
pub(super) struct ChangedConfigFile {
    path: PathBuf,
    written: NamedTempFile,
    pub(super) settings: Settings,
}

impl ConfigFile {
    pub(super) fn open(config: &ConfigFlag) -> Result<Self, CliError> {
        let path = config.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
        let text = std::fs::read_to_string(&path).map_err(|error| {
            CliError::file("the configuration", &path, &error).with_remedy("`toolgate init` writes one")
        })?;
        let settings = setup::settings(&ConfigFlag { config: Some(path.clone()) })?;
        Ok(Self { path, text, settings })
    }

    /// The error for a file whose form is not changed here, with what to do by hand.
    pub(super) fn by_hand(&self, remedy: impl Into<String>) -> CliError {
        let path = self.path.display();
        CliError::usage(format!("`{path}` is in a form that this command does not change; nothing was written"))
            .with_remedy(remedy)
    }

    /// The file with another text. A text that cannot be loaded is an error with the reason.
    pub(super) fn changed(&self, text: &str) -> Result<ChangedConfigFile, CliError> {
        let written = self.beside(text).map_err(|error| CliError::file("the configuration", &self.path, &error))?;
        let settings = setup::settings(&ConfigFlag { config: Some(written.path().to_path_buf()) });
        let settings = settings.map_err(|error| {
            let path = self.path.display();
            let temporary = written.path().display().to_string();
            CliError::usage(format!("`{path}` with this change cannot be loaded; nothing was written"))
                .with_remedy(error.to_string().replace(&temporary, &path.to_string()))
        })?;
        Ok(ChangedConfigFile { path: self.path.clone(), written, settings })
    }

    /// A text in a file in the same folder, with the same permissions.
    fn beside(&self, text: &str) -> std::io::Result<NamedTempFile> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".toolgate-").suffix(".yaml").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        std::fs::set_permissions(file.path(), std::fs::metadata(&self.path)?.permissions())?;
        Ok(file)
    }
}

impl ChangedConfigFile {
    /// Replaces the file, through a link if it is one.
    pub(super) fn save(self) -> Result<(), CliError> {
        let target = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let saved = self.written.persist(&target);
        saved.map(drop).map_err(|error| CliError::file("the configuration", &self.path, &error.error))
    }
}
