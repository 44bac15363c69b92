DROP TABLE outbox, signers, operations, transactions, pins, batches, pin_cursors, refused_pins, data, messages, members, subscriptions, listeners,
    apis, interfaces, blockchain_events, events, namespaces, leases, chain_blocks, chains;
