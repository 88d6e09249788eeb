//! Starter configuration of `toolgate init`: it works at once, without a key, and explains itself.

/// A file of the starter configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateFile {
    /// The file name, relative to the configuration's folder.
    pub name: &'static str,
    pub text: &'static str,
}

/// The files of the starter configuration, `toolgate.yaml` first.
pub fn template() -> [TemplateFile; 2] {
    [
        TemplateFile { name: super::FILE_NAME, text: include_str!("../../examples/config/starter/toolgate.yaml") },
        TemplateFile {
            name: "conversation.yaml",
            text: include_str!("../../examples/config/starter/conversation.yaml"),
        },
    ]
}
