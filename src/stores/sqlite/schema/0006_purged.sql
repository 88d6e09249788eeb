-- Since when the content of a run is gone: its facts are deleted, and this row is what is left of it.
ALTER TABLE run ADD COLUMN purged_at TEXT; -- RFC 3339
