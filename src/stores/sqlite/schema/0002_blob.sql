-- Content outside the journals, under the SHA-256 of its bytes.
CREATE TABLE blob (
    sha256     BLOB NOT NULL PRIMARY KEY,
    media_type TEXT NOT NULL,
    bytes      BLOB NOT NULL
) STRICT;

-- Which runs use it: what the last of them leaves behind can go.
CREATE TABLE blob_use (
    run    TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (run, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_use_by_blob ON blob_use (sha256);
