-- The status `turn_limit` is called `incomplete`.
UPDATE run SET status = 'incomplete' WHERE status = 'turn_limit';
