-- So that what is kept of a run's answers goes with the run.
CREATE INDEX reply_by_run ON reply (head ->> 'run');
