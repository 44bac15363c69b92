DROP TABLE deferred_pins;
DROP INDEX messages_idempotency;
ALTER TABLE messages DROP COLUMN body_hash, DROP COLUMN idempotency_key;
