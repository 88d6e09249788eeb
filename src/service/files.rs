//! Files of one tenant: uploads, which expire, and their use as input of new runs.
//!
//! A run that names a file uses its blob from its first event on. The file may expire or be deleted after that: the run, its
//! forks and its session keep the bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::chat::{FileType, Media, Part};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::FileId;
use toolgate_ports::{FileError, FileFilter, FileQuota, StoredFile};
use uuid::Uuid;

use super::authorize::Scope;
use super::error::ServiceError;
use super::error_reason::ErrorReason;
use super::file_config::FileConfig;
use super::name_rules::check_name;
use super::runs::TenantRunner;

/// A file to upload.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// The name that the client gave, perhaps with a path.
    pub name: String,
    pub bytes: Vec<u8>,
    /// How long the file is stored; default: as long as the configuration allows.
    pub expires_in: Option<Duration>,
}

impl TenantRunner {
    /// Stores a file of the tenant, in the name of the caller.
    pub async fn upload_file(&self, new: NewFile) -> Result<StoredFile, ServiceError> {
        let FileConfig { store, limits } = self.file_config()?;
        let longest = limits.expire_after;
        let lifetime = new.expires_in.unwrap_or(longest);
        if lifetime.is_zero() || lifetime > longest {
            let rule = format!("must be between 1 and {}", longest.as_secs());
            return Err(ServiceError::invalid("/expires_in_s", rule));
        }
        let name = base_name(&new.name).map_err(|why| ServiceError::invalid("/file", why))?;
        let size = new.bytes.len() as u64;
        if size > limits.max_bytes {
            let detail = format!("the file is too large: this server accepts at most {} bytes", limits.max_bytes);
            return Err(ServiceError::new(ErrorCode::PayloadTooLarge, detail));
        }
        if size == 0 {
            return Err(ServiceError::invalid("/file", "the file is empty"));
        }
        let file_type = FileType::detect(&name, &new.bytes).ok_or_else(|| {
            let detail = format!("no model reads this file: it is not {}", FileType::KNOWN);
            ServiceError::new(ErrorCode::UnsupportedMediaType, detail)
        })?;
        let now = self.now();
        let blob = Blob::new(file_type.media_type(), new.bytes);
        let file = StoredFile {
            id: format!("file_{}", Uuid::now_v7().simple()).into(),
            tenant: self.caller.tenant.clone(),
            principal: self.caller.principal.clone(),
            name,
            media_type: file_type.media_type().to_owned(),
            size,
            handle: blob.handle(),
            created_at: now,
            created_by: self.caller.name.to_string(),
            expires_at: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        };
        match store.put_file(&file, blob, limits.quota).await {
            Ok(()) => Ok(file),
            Err(FileError::Store(error)) => Err(error.into()),
            Err(FileError::QuotaExceeded { files, bytes }) => {
                let FileQuota { files: most_files, bytes: most_bytes } = limits.quota;
                let detail = format!(
                    "this tenant has {files} files with {bytes} bytes, and may have {most_files} with {most_bytes}; \
                     delete some, or wait until they expire"
                );
                Err(ServiceError::lasting_conflict(detail).with(ErrorReason::LimitReached))
            }
        }
    }

    /// Files of the tenant after this one, newest first.
    pub async fn files(&self, after: Option<FileId>, limit: usize) -> Result<Vec<StoredFile>, ServiceError> {
        let store = &self.file_config()?.store;
        Ok(store.files(&FileFilter { after, limit: Some(limit), ..self.live_files() }).await?)
    }

    /// A file of the tenant, if there is such a file and it has not expired.
    pub async fn find_file(&self, id: &str) -> Result<Option<StoredFile>, ServiceError> {
        let store = &self.file_config()?.store;
        Ok(store.files(&FileFilter { id: Some(id.into()), ..self.live_files() }).await?.pop())
    }

    /// A file of the tenant.
    pub async fn file(&self, id: &str) -> Result<StoredFile, ServiceError> {
        self.find_file(id).await?.ok_or_else(|| ServiceError::not_found("file", id))
    }

    /// A file of the tenant, and its bytes.
    pub async fn file_content(&self, id: &str) -> Result<(StoredFile, Blob), ServiceError> {
        let file = self.file(id).await?;
        // It may be deleted between the two lookups.
        let blob = self.bytes_of(&file).await?.ok_or_else(|| ServiceError::not_found("file", id))?;
        Ok((file, blob))
    }

    /// Deletes a file of the tenant. Runs that were started with it keep its bytes.
    pub async fn delete_file(&self, id: &str) -> Result<(), ServiceError> {
        let file = self.file(id).await?;
        if let Some(own) = &self.caller.principal
            && file.principal.as_ref() != Some(own)
        {
            let detail = format!("these credentials act for `{own}`, and this file does not: they may read it");
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::OtherPrincipal));
        }
        match self.file_config()?.store.delete_file(&file.tenant, &file.id).await? {
            true => Ok(()),
            false => Err(ServiceError::not_found("file", id)),
        }
    }

    fn live_files(&self) -> FileFilter {
        FileFilter { tenant: self.caller.tenant.clone(), id: None, now: self.now(), after: None, limit: None }
    }

    fn file_config(&self) -> Result<&FileConfig, ServiceError> {
        let missing = || ServiceError::new(ErrorCode::Unavailable, "this server stores no files");
        self.files.as_deref().ok_or_else(missing)
    }

    async fn bytes_of(&self, file: &StoredFile) -> Result<Option<Blob>, ServiceError> {
        let Some(blobs) = self.runner.blobs() else { return Ok(None) };
        Ok(blobs.get(&file.handle).await?)
    }
}

/// The files that the input of a new run names, and the media of runs whose messages it repeats. A text becomes part of the
/// journal, as every other text of a message; of anything else, the journal has the handle of its blob.
pub struct InputFiles<'a> {
    runner: &'a TenantRunner,
    /// The files that were found, each with the part that it becomes.
    found: BTreeMap<String, (StoredFile, Part)>,
    bytes: u64,
    text_bytes: u64,
    /// The blobs of the runs whose messages the input repeats.
    of_runs: BTreeMap<String, BTreeSet<BlobHandle>>,
    /// The blobs that the parts name, for [`Request::files`](toolgate_runner::Request::files).
    pub handles: BTreeSet<BlobHandle>,
}

/// The kind of part that a file becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePart {
    Image,
    Audio,
    /// The kind of the file itself.
    Any,
}

impl<'a> InputFiles<'a> {
    /// The most bytes of text files in an input. Texts stand in the journal.
    const MAX_TEXT_BYTES: u64 = 2 << 20;
    /// The most runs of whose media an input may name some. Each is read from the store.
    const MAX_RUNS: usize = 100;

    /// Files of the caller's tenant.
    pub fn new(runner: &'a TenantRunner) -> Self {
        Self {
            runner,
            found: BTreeMap::new(),
            bytes: 0,
            text_bytes: 0,
            of_runs: BTreeMap::new(),
            handles: BTreeSet::new(),
        }
    }

    /// Adds media of a run that the caller may read. `pointer` is the place of the handle in the request, `run_pointer`
    /// that of the run's id.
    pub async fn of_run(
        &mut self,
        run: &str,
        handle: &BlobHandle,
        pointer: &str,
        run_pointer: &str,
    ) -> Result<(), ServiceError> {
        if self.of_runs.get(run).is_some_and(|blobs| blobs.contains(handle)) {
            self.handles.insert(*handle);
            return Ok(());
        }
        self.runner.caller.require(Scope::RunsRead)?;
        if self.of_runs.len() >= Self::MAX_RUNS && !self.of_runs.contains_key(run) {
            let rule = format!("the media of an input are from at most {} runs", Self::MAX_RUNS);
            return Err(ServiceError::invalid(run_pointer, rule));
        }
        let missing = |error: ServiceError| match matches!(error.code, ErrorCode::NotFound | ErrorCode::Gone) {
            true => ServiceError::invalid(run_pointer, error.detail),
            false => error,
        };
        let named = self.runner.run(run).await.map_err(missing)?;
        // The messages that the run added, and otherwise those before it.
        let mut blobs = named.load().await?.blobs().clone();
        if !blobs.contains(handle) {
            blobs = named.load_with_conversation().await?.blobs().clone();
        }
        if !blobs.contains(handle) {
            return Err(ServiceError::invalid(pointer, format!("run `{run}` has no such media")));
        }
        self.handles.insert(*handle);
        self.of_runs.insert(run.to_owned(), blobs);
        Ok(())
    }

    /// The file as a part of a message. `pointer` is the place of its id in the request. Files that are unknown, expired, of
    /// another tenant or of another principal are not told apart.
    pub async fn part(&mut self, id: &str, kind: FilePart, pointer: &str) -> Result<Part, ServiceError> {
        let (file, part) = match self.found.get(id) {
            Some(found) => found.clone(),
            None => {
                let missing = || format!("there is no file `{id}`, or it has expired; upload it again");
                let found = self.find(id, pointer).await?.ok_or_else(|| ServiceError::invalid(pointer, missing()))?;
                self.found.insert(id.to_owned(), found.clone());
                found
            }
        };
        self.bytes = self.bytes.saturating_add(file.size);
        if self.bytes > Media::MAX_CONVERSATION_BYTES {
            let most = Media::MAX_CONVERSATION_BYTES >> 20;
            return Err(ServiceError::invalid(
                pointer,
                format!("the files of an input have at most {most} MiB together"),
            ));
        }
        let is_kind = match kind {
            FilePart::Image => matches!(part, Part::Image(_)),
            FilePart::Audio => matches!(part, Part::Audio(_)),
            FilePart::Any => true,
        };
        if !is_kind {
            let detail = format!("the file is {}; name it in a part of type `file`", file.media_type);
            return Err(ServiceError::invalid(pointer, detail));
        }
        if matches!(part, Part::Resource { text: Some(_), .. }) {
            self.text_bytes = self.text_bytes.saturating_add(file.size);
            if self.text_bytes > Self::MAX_TEXT_BYTES {
                return Err(Self::too_much_text(pointer));
            }
        } else {
            // Not of a text: its URI is its name, which may look like the handle of another blob.
            self.handles.insert(file.handle);
        }
        Ok(part)
    }

    /// A file that the caller may use, and the part that it becomes.
    async fn find(&self, id: &str, pointer: &str) -> Result<Option<(StoredFile, Part)>, ServiceError> {
        let Some(file) = self.runner.find_file(id).await? else { return Ok(None) };
        let own = &self.runner.caller.principal;
        if own.is_some() && file.principal.is_some() && file.principal != *own {
            return Ok(None);
        }
        let media = || Media::at(file.media_type.clone(), file.handle.to_string());
        let resource = |uri: String, text| Part::Resource {
            uri,
            name: Some(file.name.clone()),
            media_type: Some(file.media_type.clone()),
            text,
            data: None,
        };
        let part = match file.media_type.split_once('/') {
            Some(("image", _)) => Part::Image(media()),
            Some(("audio", _)) => Part::Audio(media()),
            _ if file.media_type == FileType::Pdf.media_type() => resource(file.handle.to_string(), None),
            _ if file.size > Self::MAX_TEXT_BYTES => return Err(Self::too_much_text(pointer)),
            _ => {
                let Some(blob) = self.runner.bytes_of(&file).await? else { return Ok(None) };
                resource(file.name.clone(), Some(String::from_utf8_lossy(blob.bytes()).into_owned()))
            }
        };
        Ok(Some((file, part)))
    }

    fn too_much_text(pointer: &str) -> ServiceError {
        let most = Self::MAX_TEXT_BYTES >> 20;
        ServiceError::invalid(pointer, format!("the text files of an input have at most {most} MiB together"))
    }
}

/// The name of a file without its path; the error says why it is invalid. Clients of some systems send a whole path.
fn base_name(name: &str) -> Result<String, String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).trim();
    check_name(name)?;
    // Characters that reverse the direction of a text make `exe.txt` of `txt.exe`.
    let reorders =
        |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if name.chars().any(reorders) || name.chars().all(|letter| letter == '.') {
        return Err(
            "the name of a file is not only dots, and has no characters that change the direction of text".into()
        );
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_path_and_nothing_else() {
        for (sent, name) in [
            ("a.pdf", "a.pdf"),
            ("/etc/passwd", "passwd"),
            ("..\\..\\C:\\a b.txt", "a b.txt"),
            ("../../é \"1\".md", "é \"1\".md"),
        ] {
            assert_eq!(base_name(sent).as_deref(), Ok(name), "{sent}");
        }
        for wrong in ["", "..", "a/..", "/", "a\0b", "a\r\nb", "a\u{202e}txt.exe", &"x".repeat(257)] {
            assert!(base_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
