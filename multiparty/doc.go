// Package multiparty makes a broadcast real: what one member sends, every member of the network applies in the same order, without trusting one another.
//
//	BroadcastInterface, BroadcastAPI, BroadcastMessage
//	   │  message, data and this member's own optimistic definition: one transaction          ready
//	   ▼
//	publisher: batch ─► payload ─► shared storage ─► pin operation into the outbox             sent
//	   │
//	   ▼  the pin contract's log, the same for every member, the sender included
//	aggregator: fetch ─► verify ─► decide in chain order: one transaction with the events      confirmed | rejected
//
// What it guarantees:
//
//   - A message that was accepted ends confirmed or rejected, with a reason and an event, whatever crashes in between; its batch is pinned once.
//   - The decisions depend on the chain alone. Two members that follow the same chain come to the same states, also where one of them joins later or has
//     deleted its own copy of something.
//   - A batch that lies, about its hashes, its author, its size or its history, is refused and reported; it changes nothing and holds nothing up.
//   - A payload that cannot be had holds up what depends on it (see contexts.go), and nothing else.
//   - Every hash can be recomputed by a third party; see hash.go.
//
// What it does not: it does not undo. A pin whose block is reorganised away after the configured confirmations stays applied.
package multiparty
