-- One row that a readiness check writes, to learn whether the file can be written.
CREATE TABLE write_check (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at INTEGER NOT NULL, -- unix milliseconds by the database's own clock
    filler     BLOB    NOT NULL
) STRICT;
