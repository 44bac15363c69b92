// Package contract is the neutral model of a smart contract and everything that can be computed from it without I/O:
// ABI to interface and back, JSON values to ABI bytes and back, event logs, revert reasons, constructor arguments.
//
//	ABI JSON ──FromABI──► Interface ──Validate──► Compile ──► Compiled ── Method("transfer") ── Encode, DecodeOutput
//	    ▲                     │                                  │    └─── Event("Transfer")  ── DecodeLog
//	    └───────ABI───────────┘                                  └──────── Errors            ── Decode (reverts)
//
// Guarantees:
//   - A value is exact or refused: integers of any width never pass through a float, never wrap, and an error names the
//     field, the value's range and its path (input.order.items[2].price).
//   - Everything is bounded for any input: type depth and size, encoded size, decoded size. Data from a chain can claim
//     any length or offset; the work it causes is linear in the size of the data.
//   - Compiled values are immutable and safe for concurrent use; compile once, keep, use often.
//   - Decoded text is storable: invalid UTF-8 and NUL characters of the chain become U+FFFD, because PostgreSQL refuses
//     both in text and jsonb.
//
// Not here: reading the chain, storing interfaces, HTTP. A log that fits the event's shape but comes from another
// contract decodes without complaint: the caller filters by address.
//
// Errors meant for the caller are *pactwire.Error. KindInvalid is the caller's mistake and carries Fields;
// KindBadUpstream means that the chain answered data that the interface does not describe.
package contract
