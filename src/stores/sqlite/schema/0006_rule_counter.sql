-- What the rules with a limit allowed, by window. Amounts are millionths.
CREATE TABLE rule_counter (
    tenant TEXT NOT NULL,
    policy TEXT NOT NULL,
    rule TEXT NOT NULL,
    time_window TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (tenant, policy, rule, time_window)
) STRICT, WITHOUT ROWID;

-- The uses that a counter sums, each by the identity of its call.
CREATE TABLE rule_use (
    tenant TEXT NOT NULL,
    policy TEXT NOT NULL,
    rule TEXT NOT NULL,
    time_window TEXT NOT NULL,
    id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (tenant, policy, rule, time_window, id)
) STRICT, WITHOUT ROWID;
