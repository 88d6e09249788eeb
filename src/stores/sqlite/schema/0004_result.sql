-- Result of a run so far, as JSON: summary, error, exit code, duration, models; null for runs of earlier versions.
ALTER TABLE run ADD COLUMN result TEXT;
