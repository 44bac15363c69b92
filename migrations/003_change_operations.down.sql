DROP INDEX outbox_request;
ALTER TABLE outbox DROP COLUMN attempts, DROP COLUMN request, DROP COLUMN cancel_at;
ALTER TABLE operations
    DROP COLUMN attempts, DROP COLUMN to_address, DROP COLUMN data, DROP COLUMN value, DROP COLUMN gas, DROP COLUMN options,
    ADD COLUMN tx_hashes bytea[];
