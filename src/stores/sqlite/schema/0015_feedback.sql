-- Feedback on runs, which is deleted with their content.
CREATE TABLE feedback (
    run        TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- Unix nanoseconds
    body       TEXT    NOT NULL, -- JSON: the whole feedback
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
