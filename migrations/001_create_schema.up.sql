-- Times are timestamptz in UTC. Hashes and addresses are bytea. Blocks are bigint: no chain reaches 2^63 blocks.

-- One row per configured chain: which chain it truly is, and how far its log has been recorded.
CREATE TABLE chains (
    name          text PRIMARY KEY,
    chain_id      numeric(78, 0) NOT NULL,
    genesis_hash  bytea NOT NULL,
    pin_contract  bytea,                       -- address of the pin contract; null until deployed or configured
    pin_block     bigint NOT NULL DEFAULT 0,   -- the first block that can hold pins
    pin_next      bigint NOT NULL DEFAULT 0,   -- the first block whose pins are not recorded yet; counts only while pin_live is false
    pin_live      boolean NOT NULL DEFAULT false, -- pins move with next_block
    next_block    bigint NOT NULL DEFAULT 0,   -- the first block that the live reader has not recorded yet
    epoch         bigint NOT NULL DEFAULT 0,   -- fencing: the highest lease epoch that wrote here
    created       timestamptz NOT NULL DEFAULT now()
);

-- Hashes of the last recorded blocks, to recognise a reorganisation by its parent hash.
CREATE TABLE chain_blocks (
    chain   text NOT NULL REFERENCES chains (name) ON DELETE CASCADE,
    number  bigint NOT NULL,
    hash    bytea NOT NULL,
    parent  bytea NOT NULL,
    PRIMARY KEY (chain, number)
);

-- Who does what that only one may do, across replicas. Expiry is by the database's clock; epoch grows with each new owner.
CREATE TABLE leases (
    name     text PRIMARY KEY,
    owner    uuid NOT NULL,
    epoch    bigint NOT NULL,
    expires  timestamptz NOT NULL
);

-- sequence is the head of the namespace's history. Its row lock serialises appends, so that sequence order is commit order.
CREATE TABLE namespaces (
    name      text PRIMARY KEY,
    chain     text NOT NULL REFERENCES chains (name),
    sequence  bigint NOT NULL DEFAULT 0,
    created   timestamptz NOT NULL DEFAULT now()
);

-- The history. body is the enrichment as JSON, ready to be spliced into a frame; body_key is its name in the frame.
CREATE TABLE events (
    namespace    text NOT NULL,
    sequence     bigint NOT NULL,
    id           uuid NOT NULL,
    type         text NOT NULL,
    reference    uuid NOT NULL,
    transaction  uuid,
    topic        text NOT NULL DEFAULT '',
    created      timestamptz NOT NULL,
    listener     uuid,          -- of a blockchain event
    name         text,          -- of a blockchain event
    author       text,          -- of a message, as are tag, "group" and topics
    tag          text,
    "group"      text,
    topics       text[],
    tx_type      text,
    body_key     text NOT NULL DEFAULT '',
    body         text NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, sequence)
);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE INDEX events_reference ON events (reference);

-- One record per (listener, log). A record whose block was reorganised away is marked, and only then may the same log be recorded again.
-- The values live in the body of its event in the history, at (namespace, sequence).
CREATE TABLE blockchain_events (
    id           uuid PRIMARY KEY,
    namespace    text NOT NULL,
    sequence     bigint NOT NULL,
    listener     uuid NOT NULL,
    name         text NOT NULL,
    protocol_id  text NOT NULL,
    tx_hash      bytea NOT NULL,
    block_number bigint NOT NULL,
    block_hash   bytea NOT NULL,
    log_index    bigint NOT NULL,
    timestamp    timestamptz NOT NULL,
    removed      boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX blockchain_events_once ON blockchain_events (listener, block_number, log_index, block_hash) WHERE NOT removed;
CREATE INDEX blockchain_events_sequence ON blockchain_events (namespace, sequence);

-- Definitions. Ids come from whoever made the definition, so they are unique within the namespace only. A deleted one keeps its row: the network's
-- members must go on agreeing on which names are taken, whatever each of them has deleted at home.
CREATE TABLE interfaces (
    namespace   text NOT NULL,
    id          uuid NOT NULL,
    name        text NOT NULL,
    version     text NOT NULL,
    description text NOT NULL DEFAULT '',
    author      text NOT NULL,
    message     uuid NOT NULL,
    state       text NOT NULL,          -- ready, confirmed, rejected
    definition  text NOT NULL,          -- the whole contract.Interface as JSON
    created     timestamptz NOT NULL,
    deleted     timestamptz,            -- this member's copy was deleted
    PRIMARY KEY (namespace, id)
);
CREATE UNIQUE INDEX interfaces_name ON interfaces (namespace, name, version) WHERE state <> 'rejected';
CREATE INDEX interfaces_message ON interfaces (namespace, message);

CREATE TABLE apis (
    namespace  text NOT NULL,
    id         uuid NOT NULL,
    name       text NOT NULL,
    interface  uuid NOT NULL,
    location   bytea,                   -- contract address; null when each request brings its own
    author     text NOT NULL,
    message    uuid NOT NULL,
    state      text NOT NULL,           -- ready, confirmed, rejected, replaced (its author confirmed another one of the same name)
    created    timestamptz NOT NULL,
    updated    timestamptz,
    deleted    timestamptz,             -- this member's copy was deleted
    PRIMARY KEY (namespace, id)
);
CREATE UNIQUE INDEX apis_ready ON apis (namespace, name) WHERE state = 'ready' AND deleted IS NULL;
CREATE UNIQUE INDEX apis_confirmed ON apis (namespace, name) WHERE state = 'confirmed';
CREATE INDEX apis_interface ON apis (namespace, interface);
CREATE INDEX apis_message ON apis (namespace, message);

-- checkpoint is the first block that this listener has not read; it counts only while the listener is not live. A live listener
-- moves with its chain's next_block.
CREATE TABLE listeners (
    id           uuid PRIMARY KEY,
    namespace    text NOT NULL,
    chain        text NOT NULL REFERENCES chains (name),
    name         text NOT NULL,
    protocol_id  text NOT NULL,
    interface    uuid,
    address      bytea,                 -- null: every address
    event        text NOT NULL,         -- the contract.Event as JSON
    signature    text NOT NULL,
    topic0       bytea,                 -- null: anonymous event
    topic        text NOT NULL DEFAULT '',
    first_event  text NOT NULL,
    first_block  bigint NOT NULL,
    checkpoint   bigint NOT NULL,
    live         boolean NOT NULL DEFAULT false,
    events       bigint NOT NULL DEFAULT 0,
    created      timestamptz NOT NULL
);
CREATE UNIQUE INDEX listeners_name ON listeners (namespace, name);
CREATE INDEX listeners_chain ON listeners (chain); -- holds nothing that moves, so that a checkpoint's update touches no index

-- position is the highest sequence up to which everything is acknowledged or filtered out.
CREATE TABLE subscriptions (
    id         uuid PRIMARY KEY,
    namespace  text NOT NULL REFERENCES namespaces (name),
    name       text NOT NULL,
    transport  text NOT NULL,
    filter     text NOT NULL,           -- JSON as answered
    options    text NOT NULL,           -- JSON as answered, firstEvent resolved
    position   bigint NOT NULL,
    beyond     bigint[] NOT NULL DEFAULT '{}', -- acknowledged out of order, beyond the position: first, last, first, last …
    epoch      bigint NOT NULL DEFAULT 0,      -- fencing: the highest lease epoch that wrote here
    created    timestamptz NOT NULL,
    updated    timestamptz
);
CREATE UNIQUE INDEX subscriptions_name ON subscriptions (namespace, name);

-- The members of a namespace's network, as the pin contract's log tells them up to the namespace's position in it.
CREATE TABLE members (
    namespace text NOT NULL REFERENCES namespaces (name),
    account   bytea NOT NULL,
    name      text NOT NULL,
    url       text NOT NULL DEFAULT '',
    active    boolean NOT NULL DEFAULT true,
    block     bigint NOT NULL,          -- of the last change
    PRIMARY KEY (namespace, account)
);

CREATE TABLE messages (
    namespace  text NOT NULL,
    id         uuid NOT NULL,
    network    text NOT NULL,           -- the namespace's name within the network, as the header has it
    type       text NOT NULL,
    txtype     text NOT NULL,
    author     text NOT NULL,
    key        text NOT NULL,
    created    timestamptz NOT NULL,
    topics     text[] NOT NULL,
    tag        text NOT NULL DEFAULT '',
    "group"    text NOT NULL DEFAULT '',
    datahash   bytea NOT NULL,
    hash       bytea NOT NULL,
    data       text NOT NULL,           -- JSON: [{"id","hash"}]
    batch      uuid,
    state      text NOT NULL,           -- ready, sent, confirmed, rejected
    reason     text NOT NULL DEFAULT '',-- why it was rejected
    confirmed  timestamptz,
    transaction uuid,
    local      boolean NOT NULL,        -- sent by this member
    pin        bigint,                  -- position of the pin that decided it; null while the network's order has not
    PRIMARY KEY (namespace, id)
);
CREATE INDEX messages_ready ON messages (namespace, id) WHERE state = 'ready';
CREATE INDEX messages_batch ON messages (namespace, batch);

-- The values of messages, in the order of each message.
CREATE TABLE data (
    namespace  text NOT NULL,
    message    uuid NOT NULL,
    position   integer NOT NULL,
    id         uuid NOT NULL,
    hash       bytea NOT NULL,
    value      text NOT NULL,           -- canonical JSON
    created    timestamptz NOT NULL,
    PRIMARY KEY (namespace, message, position),
    FOREIGN KEY (namespace, message) REFERENCES messages (namespace, id) ON DELETE CASCADE
);
CREATE INDEX data_id ON data (namespace, id);

CREATE TABLE batches (
    namespace  text NOT NULL,
    id         uuid NOT NULL,
    author     text NOT NULL,
    hash       bytea NOT NULL,
    location   text NOT NULL DEFAULT '', -- where the payload is, in the words of the shared storage
    messages   integer NOT NULL,         -- how many
    state      text NOT NULL,            -- sent, confirmed, rejected
    reason     text NOT NULL DEFAULT '', -- why it was rejected
    operation  uuid,                     -- the operation that pins it; null for a foreign batch
    created    timestamptz NOT NULL,
    confirmed  timestamptz,
    pin        bigint,                   -- position of the pin that decided it
    pin_tx     bytea,                    -- the transaction with that pin
    PRIMARY KEY (namespace, id, author)
);
CREATE INDEX batches_sent ON batches (namespace) WHERE state = 'sent';

-- The logs of the pin contract in chain order, as the reader recorded them; position is the order in which they were recorded. Each
-- namespace of the chain has its own cursor on them, so that one that is added later replays them all.
CREATE TABLE pins (
    chain        text NOT NULL REFERENCES chains (name),
    position     bigint GENERATED ALWAYS AS IDENTITY,
    block_number bigint NOT NULL,
    tx_index     bigint NOT NULL,
    log_index    bigint NOT NULL,
    block_hash   bytea NOT NULL,
    tx_hash      bytea NOT NULL,
    topics       bytea[] NOT NULL,
    data         bytea NOT NULL,
    PRIMARY KEY (chain, block_number, log_index, block_hash) -- the block hash: an applied pin may stand beside the one that a reorganisation put in its place
);
CREATE UNIQUE INDEX pins_position ON pins (chain, position);
-- The first word of a pin's and a chunk's data is the batch's id.
CREATE INDEX pins_batch ON pins (chain, substring(data FROM 1 FOR 32), position);

CREATE TABLE pin_cursors (
    namespace  text PRIMARY KEY REFERENCES namespaces (name),
    position   bigint NOT NULL
);

-- Batches that this member refused, with the reason: for a person to look at.
CREATE TABLE refused_pins (
    namespace    text NOT NULL,
    position     bigint NOT NULL,
    author       text NOT NULL,
    batch        uuid NOT NULL,
    block_number bigint NOT NULL,
    tx_hash      bytea NOT NULL,
    reason       text NOT NULL,
    created      timestamptz NOT NULL,
    PRIMARY KEY (namespace, position)
);

CREATE TABLE transactions (
    id              uuid PRIMARY KEY,
    namespace       text NOT NULL,
    type            text NOT NULL,      -- contract_invoke, batch_pin
    idempotency_key text,
    body_hash       bytea,              -- of the request that brought the idempotency key
    created         timestamptz NOT NULL
);
CREATE UNIQUE INDEX transactions_idempotency ON transactions (namespace, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX transactions_namespace ON transactions (namespace, id);

-- transaction always names a row of transactions: one statement inserts both (and the outbox row), so that a foreign key would only cost time.
CREATE TABLE operations (
    id           uuid PRIMARY KEY,
    namespace    text NOT NULL,
    transaction  uuid NOT NULL,
    type         text NOT NULL,          -- blockchain_invoke, blockchain_pin_batch
    status       text NOT NULL,          -- Initialized, Pending, Succeeded, Failed
    plugin       text NOT NULL DEFAULT 'ethereum',
    chain        text NOT NULL,
    key          bytea NOT NULL,         -- signing address
    input        text NOT NULL DEFAULT '{}',  -- JSON: what was asked, readable
    output       text,                   -- JSON: transactionHash, blockNumber, gasUsed …
    error        text NOT NULL DEFAULT '',
    revert       text,                   -- JSON of pactwire.Revert
    retry        uuid,                   -- the newer operation that took over
    errors       text NOT NULL DEFAULT '[]', -- JSON: custom errors of the interface, to decode a revert on the chain
    tx_hash      bytea,                  -- the transaction that was mined; null until the operation is terminal
    tx_hashes    bytea[],                -- of every attempt; null until the operation is terminal
    created      timestamptz NOT NULL,
    updated      timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX operations_namespace ON operations (namespace, id);
CREATE INDEX operations_transaction ON operations (transaction);

-- The nonce as the key's one submitter knows it (invariant 4 of docs/architecture.md). next_nonce is the lowest that was never given.
CREATE TABLE signers (
    chain       text NOT NULL REFERENCES chains (name),
    address     bytea NOT NULL,
    next_nonce  bigint NOT NULL DEFAULT 0,
    epoch       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (chain, address)
);

-- What is still to be mined. A row leaves when its operation is terminal. A filler is a transfer of nothing to oneself that uses up a nonce which would
-- otherwise hold up the later ones: it has an id, but no operation.
CREATE TABLE outbox (
    operation   uuid PRIMARY KEY,
    chain       text NOT NULL,
    key         bytea NOT NULL,
    filler      boolean NOT NULL DEFAULT false,
    nonce       bigint,                  -- null until assigned
    to_address  bytea,                   -- null: contract creation
    data        bytea NOT NULL,
    value       numeric(78, 0) NOT NULL DEFAULT 0,
    gas         bigint NOT NULL,         -- the gas limit
    options     text NOT NULL DEFAULT '{}', -- JSON: fee options and nonce asked for
    raw         bytea,                   -- the signed bytes sent last
    tx_hash     bytea,                   -- of raw
    tx_hashes   bytea[] NOT NULL DEFAULT '{}', -- of every attempt; any of them may be mined
    assigned    timestamptz,             -- when the nonce was given
    created     timestamptz NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE UNIQUE INDEX outbox_nonce ON outbox (chain, key, nonce) WHERE nonce IS NOT NULL;
CREATE INDEX outbox_unassigned ON outbox (chain, key, operation) WHERE nonce IS NULL;
