-- What an operation leaves behind: each transaction signed for it, and, when it failed, what a retry needs.
ALTER TABLE operations
    DROP COLUMN tx_hashes,
    ADD COLUMN attempts   text[],          -- JSON of each attempt; null until the operation is terminal
    ADD COLUMN to_address bytea,           -- this and the next four: of an invocation that failed
    ADD COLUMN data       bytea,
    ADD COLUMN value      numeric(78, 0),
    ADD COLUMN gas        bigint,
    ADD COLUMN options    text;

ALTER TABLE outbox
    ADD COLUMN attempts  text[] NOT NULL DEFAULT '{}', -- JSON of each attempt, as tx_hashes
    ADD COLUMN request   text,                         -- JSON: the change that a client asks for; the key's submitter answers it
    ADD COLUMN cancel_at integer;                      -- tx_hashes from this index on (from 0) cancel the operation instead of doing it
CREATE INDEX outbox_request ON outbox (chain, key) WHERE request IS NOT NULL;
