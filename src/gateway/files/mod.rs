//! `/v1/files`: uploads files, which runs name in their input.

mod upload;
mod view;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use toolgate_core::id::FileId;
use toolgate_service::TenantRunner;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::upload::{NewFileView, UploadForm};
use self::view::FileView;
use crate::access::Admitted;
use crate::body::{Path, Query};
use crate::download::{FileBytes, download};
use crate::idempotency::QuotedFile;
use crate::pagination::{Page, PageResult, Paging, limit, unknown_cursor};
use crate::problem::Problem;
use crate::state::Gateway;

/// The path of uploads, whose bodies have limits of their own.
pub(crate) const UPLOADS: &str = "/v1/files";

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list, upload)).routes(routes!(read, delete)).routes(routes!(content))
}

/// Upload a file
///
/// Stores an image, audio, a PDF or a text until it expires. Name its id as `file_id` in the input of runs. The first bytes
/// determine its type; a file that no model reads is refused with `unsupported_media_type`.
#[utoipa::path(
    post, path = "/v1/files", tag = "files", operation_id = "uploadFile",
    request_body(content = NewFileView, content_type = "multipart/form-data"),
    responses((status = 201, description = "The file", body = FileView)),
)]
async fn upload(
    State(gateway): State<Gateway>,
    runner: TenantRunner,
    UploadForm(new): UploadForm,
) -> Result<Response, Problem> {
    let file = runner.upload_file(new).await?;
    let location = format!("{}{UPLOADS}/{}", gateway.settings().public_url, file.id);
    let quoted = QuotedFile(file.id.clone());
    Ok((StatusCode::CREATED, [(LOCATION, location)], quoted, Json(FileView::new(file))).into_response())
}

/// List files
///
/// Returns the files of your tenant that have not expired, newest first.
#[utoipa::path(
    get, path = "/v1/files", tag = "files", operation_id = "listFiles", params(Paging),
    responses((status = 200, description = "A page of files", body = Page<FileView>)),
)]
async fn list(Query(which): Query<Paging>, runner: Admitted<TenantRunner>) -> PageResult<FileView> {
    let limit = limit(which.limit)?;
    if let Some(after) = &which.after
        && runner.find_file(after).await?.is_none()
    {
        return Err(unknown_cursor("file", after));
    }
    let found = runner.files(which.after.map(FileId::from), limit + 1).await?;
    Ok(Json(Page::new(found, limit, |file| file.id.to_string(), FileView::new)))
}

/// Retrieve a file
///
/// Returns a file of your tenant, without its content. An expired file is not found.
#[utoipa::path(
    get, path = "/v1/files/{file}", tag = "files", operation_id = "readFile",
    responses((status = 200, description = "The file", body = FileView)),
)]
async fn read(runner: TenantRunner, Path(file): Path<String>) -> Result<Json<FileView>, Problem> {
    Ok(Json(FileView::new(runner.file(&file).await?)))
}

/// Download a file
///
/// Returns the bytes of a file of your tenant.
#[utoipa::path(
    get, path = "/v1/files/{file}/content", tag = "files", operation_id = "downloadFile",
    responses(
        (status = 200, description = "The bytes, with the media type of the file", body = inline(FileBytes), content_type = "application/octet-stream"),
    ),
)]
async fn content(Path(file): Path<String>, runner: Admitted<TenantRunner>) -> Result<Response, Problem> {
    let (file, blob) = runner.file_content(&file).await?;
    Ok(download(&file.media_type, Some(&file.name), blob))
}

/// Delete a file
///
/// Deletes a file of your tenant. Runs that were started with it keep its bytes.
#[utoipa::path(
    delete, path = "/v1/files/{file}", tag = "files", operation_id = "deleteFile",
    responses((status = 204, description = "The file is deleted")),
)]
async fn delete(runner: TenantRunner, Path(file): Path<String>) -> Result<StatusCode, Problem> {
    runner.delete_file(&file).await?;
    Ok(StatusCode::NO_CONTENT)
}
