//! Opening a page in the browser of whoever sits before the terminal, where the desktop has a command for that.

use std::process::{Command, Stdio};

/// Opens the page if there is a desktop. It is shown in the terminal all the same, so nothing depends on it.
pub(super) fn open(page: &str) {
    let Some(program) = program() else { return };
    let opening =
        Command::new(program).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = opening {
        // It ends at once, or when the browser does; nobody waits for that.
        std::thread::spawn(move || child.wait());
    }
}

#[cfg(target_os = "macos")]
fn program() -> Option<&'static str> {
    Some("open")
}

/// Without a display the command would look for a browser that runs in the terminal, and take that over.
#[cfg(not(target_os = "macos"))]
fn program() -> Option<&'static str> {
    let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_display.then_some("xdg-open")
}
