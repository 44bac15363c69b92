// Package delivery brings the history to applications: each subscription's events, in sequence order, at least once, and none after it was
// acknowledged.
//
//	history ──► tail (shared, newest events) ─┐
//	   └──────► pages (old events) ───────────┴─► reader ─► dispatcher ─► window ─► consumer
//	                                                            ▲           │ ack, nack
//	                        position in the store ◄── cursor ◄──┴───────────┘
//
// What it guarantees:
//
//   - Strict order of sequence within a session. At most max(1, readAhead) events are in flight; the window slides.
//   - One active session per durable subscription, across all replicas: the dispatcher runs under a lease. The other sessions stand by and take over
//     when the active one goes; what was not acknowledged comes again with the same id and sequence.
//   - The position covers the contiguous prefix of what is acknowledged or filtered out. Acknowledgements beyond a gap are kept beside
//     it, so they too survive a crash. They are written as fast as the database takes them: one write at a time, always the newest state.
//   - nack(n) brings n again, and after it everything later that was not acknowledged, in order.
//   - Memory is bounded by windows and pages: a slow consumer holds at most two pages. Frames are made when they are written.
//
// What it does not: an event may be delivered twice, when its acknowledgement was lost or still on its way to the database as the process
// died. An ephemeral session keeps nothing once it ends.
package delivery
