//! Browser launcher: opens a page with the desktop's own command, where there is one.

use std::process::{Command, Stdio};

/// Opens the page if there is a desktop. The terminal shows the address too, so a failure here has no effect.
pub(super) fn open(page: &str) {
    let Some(program) = program() else { return };
    let opening =
        Command::new(program).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = opening {
        // The command ends at once or together with the browser. The login does not wait for it.
        std::thread::spawn(move || child.wait());
    }
}

#[cfg(target_os = "macos")]
fn program() -> Option<&'static str> {
    Some("open")
}

/// Without a display, the command would start a browser in the terminal and take the terminal over.
#[cfg(not(target_os = "macos"))]
fn program() -> Option<&'static str> {
    let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_display.then_some("xdg-open")
}
