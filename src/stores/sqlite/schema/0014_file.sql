-- Uploaded files. The bytes are blobs: `blob_use` has the id of the file where it has that of a run.
CREATE TABLE file (
    id         TEXT    NOT NULL PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- Unix nanoseconds
    expires_at INTEGER NOT NULL, -- Unix nanoseconds
    size       INTEGER NOT NULL, -- bytes
    body       TEXT    NOT NULL  -- JSON: the whole file without its bytes
) STRICT, WITHOUT ROWID;

-- Pages of files: the columns after the id answer the filters of a list, so that the index alone finds the ids of a page.
CREATE INDEX file_by_tenant ON file (tenant, created_at, id, expires_at);
-- Files and bytes of a tenant, for its quota.
CREATE INDEX file_by_quota ON file (tenant, expires_at, size);
CREATE INDEX file_by_expiry ON file (expires_at);

-- Stored responses that quote a file, which are deleted with it.
CREATE INDEX idempotency_record_by_file ON idempotency_record (tenant, response ->> 'file')
    WHERE response ->> 'file' IS NOT NULL;
