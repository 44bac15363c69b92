DROP TABLE outbox, signers, operations, transactions, pins, batches, message_data, data, messages, members, subscriptions, listeners,
    apis, interfaces, blockchain_events, events, namespaces, leases, chain_blocks, chains;
