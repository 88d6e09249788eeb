-- What a pending run waits for, so that an inbox, a clock and a gauge need not read journals. Runs that wait since before
-- this was kept have it with their next event.
ALTER TABLE run ADD COLUMN approvals INTEGER NOT NULL DEFAULT 0; -- that are to be decided
ALTER TABLE run ADD COLUMN asked_at  INTEGER;                    -- unix nanoseconds, the oldest of them
ALTER TABLE run ADD COLUMN due_at    INTEGER;                    -- unix nanoseconds, the first time that runs out

CREATE INDEX run_by_due ON run (due_at) WHERE due_at IS NOT NULL;
