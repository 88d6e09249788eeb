-- The position of an event among those of all runs. SQLite has one writer at a time, so events become visible in the order of
-- their positions. A column of its own, because VACUUM renumbers the rows of a table without one.
CREATE TABLE ordered_journal (
    position  INTEGER PRIMARY KEY,
    run       TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    at        TEXT    NOT NULL, -- RFC 3339
    commit_id BLOB    NOT NULL, -- UUIDv7 of the append: tells a lost acknowledgement from a lost race
    event     TEXT    NOT NULL,
    UNIQUE (run, seq)
) STRICT;
INSERT INTO ordered_journal (run, seq, at, commit_id, event)
    SELECT run, seq, at, commit_id, event FROM journal ORDER BY rowid;
DROP TABLE journal;
ALTER TABLE ordered_journal RENAME TO journal;
