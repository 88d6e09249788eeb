-- Export of the spans of a run. Null if its first process exported none, and for the runs of earlier versions.
ALTER TABLE run ADD COLUMN spans_sent INTEGER;  -- position in the journal before which a collector has all spans
ALTER TABLE run ADD COLUMN spans_until INTEGER; -- lease of the exporter; Unix milliseconds by the database's clock
CREATE INDEX run_by_unsent_spans ON run (id) WHERE spans_sent < version AND status <> 'running' AND purged_at IS NULL;
