-- Tokens and cost of a run, as JSON; null for runs of earlier versions.
ALTER TABLE run ADD COLUMN usage TEXT;

-- The number of messages of a segment, so that a page of messages reads only the segments it shows.
ALTER TABLE segment ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;
UPDATE segment SET messages = json_array_length(body, '$.messages');

-- Stored responses that quote a session, which are deleted with it.
CREATE INDEX idempotency_record_by_session ON idempotency_record (tenant, response ->> 'session')
    WHERE response ->> 'session' IS NOT NULL;

-- Grants that quote a call of a run, or were given for a session: their texts are deleted with it.
CREATE INDEX approval_grant_by_run ON approval_grant (body ->> 'run') WHERE body ->> 'run' IS NOT NULL;
CREATE INDEX approval_grant_by_session ON approval_grant (coalesce(body ->> 'tenant', 'default'), body ->> 'session')
    WHERE body ->> 'session' IS NOT NULL;
