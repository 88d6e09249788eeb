-- Which grants cover a call is asked in each turn: grants of other tenants and of other conversations are not read for it.
DROP INDEX standing_grant_definition;
CREATE INDEX standing_grant_by_call ON standing_grant
    (coalesce(body ->> 'tenant', 'default'), definition, coalesce(body ->> 'session', '')) WHERE revoked IS NULL;
