//! `toolgate blobs`: stored content that runs refer to by handle.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::error::CliError;
use super::exit::Exit;
use super::new_file;
use super::output::Output;
use super::setup::{self, ConfigFlag};
use super::text::size;
use super::view::media_line;
use crate::app::{App, AppError};
use crate::core::blob::{Blob, BlobHandle};
use crate::core::chat::Media;
use crate::ports::BlobInfo;

const EXAMPLES: &str = "\
Examples:
  toolgate blobs save media://sha256-2c26…              writes 2c26b46b68ff.png here
  toolgate blobs save media://sha256-2c26… -o cat.png
  toolgate blobs save media://sha256-2c26… -o - | magick - cat.jpg

`toolgate runs show` and the end of a run with media list the handles.";

/// Save media and large results
#[derive(Args, Debug)]
pub(super) struct Blobs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Save(Save),
}

/// Write the bytes behind a handle to a file
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Save {
    /// The handle: media://sha256-… (media:// may be left out)
    #[arg(value_parser = BlobHandle::parse)]
    handle: BlobHandle,

    #[command(flatten)]
    config: ConfigFlag,

    /// The output file [default: a new file here, named after the handle]; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrites an existing file
    #[arg(long)]
    force: bool,
}

impl Blobs {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::Save(command) => command.execute(out).await,
        }
    }
}

impl Save {
    async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let found = blob(&app, &self.handle).await;
        setup::close(app, out).await;
        let blob = found?;
        match self.output.as_deref() {
            Some(path) if path == Path::new("-") => out.bytes(blob.bytes()),
            Some(path) => self.write(path, &blob, out)?,
            None => self.write(&default_name(&self.handle, &blob.media_type), &blob, out)?,
        }
        Ok(Exit::Done)
    }

    fn write(&self, path: &Path, blob: &Blob, out: &mut Output) -> Result<(), CliError> {
        new_file::write(path, blob.bytes(), self.force)?;
        out.note(format!("saved {}, {}, as {}", blob.media_type, size(blob.bytes().len() as u64), path.display()));
        Ok(())
    }
}

async fn blob(app: &App, handle: &BlobHandle) -> Result<Blob, CliError> {
    let found = match app.runner.blobs() {
        Some(blobs) => blobs.get(handle).await.map_err(AppError::from)?,
        None => None,
    };
    found.ok_or_else(|| {
        let message = format!("there is no {handle} in the store of this configuration");
        CliError::not_found(message)
            .with_remedy("`toolgate runs show` lists the stored content of a run; check --config")
    })
}

/// The default file name: the start of the hash, with the usual extension of the media type.
fn default_name(handle: &BlobHandle, media_type: &str) -> PathBuf {
    let digits = handle.to_string();
    let digits = digits.rsplit_once('-').map_or(digits.as_str(), |(_, digits)| digits);
    let start: String = digits.chars().take(12).collect();
    PathBuf::from(format!("{start}.{}", ending(media_type)))
}

fn ending(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "video/mp4" => "mp4",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        _ => "bin",
    }
}

/// A line for each medium: type, size and handle.
pub(super) async fn named(app: &App, media: &[Media]) -> Vec<String> {
    let mut lines = Vec::new();
    for medium in media {
        lines.push(media_line(medium, info(app, medium).await.map(|info| info.size)));
    }
    lines
}

/// The stored information about a medium. An unknown size is not an error.
async fn info(app: &App, medium: &Media) -> Option<BlobInfo> {
    let handle = BlobHandle::parse(medium.url.as_deref()?).ok()?;
    app.runner.blobs()?.describe(&handle).await.ok().flatten()
}
