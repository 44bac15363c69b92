-- A broadcast that is repeated with the same idempotency key is the same broadcast.
ALTER TABLE messages ADD COLUMN idempotency_key text;
ALTER TABLE messages ADD COLUMN body_hash bytea; -- of the request that brought the idempotency key
CREATE UNIQUE INDEX messages_idempotency ON messages (namespace, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Logs of the pin contract that the namespace's cursor has passed but that are not applied yet, because a payload cannot be had now, or because they depend on one
-- that waits. Two logs depend on one another when their contexts overlap: they are applied in chain order.
CREATE TABLE deferred_pins (
    namespace  text NOT NULL REFERENCES namespaces (name),
    chain      text NOT NULL,
    position   bigint NOT NULL,
    contexts   bytea[] NOT NULL,
    reason     text NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    next_try   timestamptz NOT NULL,
    created    timestamptz NOT NULL,
    PRIMARY KEY (namespace, position)
);
