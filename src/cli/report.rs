//! Error reports: one line with a remedy, and a configuration error with its position and a caret.

use miette::{GraphicalReportHandler, GraphicalTheme};

use super::error::CliError;
use super::output::Output;
use super::paint::Paint;
use super::text::block;
use crate::config::ConfigError;

/// Prints an error to standard error.
pub(super) fn error(error: &CliError, out: &mut Output) {
    let paint = out.note_paint();
    match error {
        CliError::Config(error) => {
            let text = with_caret(error, paint, out.width());
            out.drawing(text.trim_end());
        }
        CliError::Coded { .. } | CliError::Interrupted | CliError::Terminated(_) => {
            out.note(format!("{} {}", paint.red("error:"), block(&error.to_string())));
            if let Some(remedy) = error.remedy() {
                out.note(format!("{} {remedy}", paint.cyan(" help:")));
            }
        }
    }
}

fn with_caret(error: &ConfigError, paint: Paint, width: usize) -> String {
    let theme = match paint {
        Paint::Colour => GraphicalTheme::unicode(),
        Paint::Plain => GraphicalTheme::unicode_nocolor(),
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false);
    let faults: Vec<ConfigError> = error.faults().cloned().map(ConfigError::from).collect();
    let counted = error.counted().map(|counted| format!("{} {counted}:\n\n", paint.red("error:")));
    let mut text = counted.unwrap_or_default();
    let written = faults.iter().enumerate().try_for_each(|(position, fault)| {
        text.push_str(if position > 0 { "\n" } else { "" });
        handler.render_report(&mut text, fault)
    });
    match written {
        Ok(()) => text,
        Err(_) => format!("error: {}", error.plain()),
    }
}
