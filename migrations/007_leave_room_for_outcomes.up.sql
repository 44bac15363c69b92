-- An operation is written three times: accepted, pending, ended, and grows with its outcome. With room left on its page the later versions stay there, and none of
-- the table's indexes has to be touched (a heap-only tuple).
ALTER TABLE operations SET (fillfactor = 50);
