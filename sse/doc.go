// Package sse carries the events of a durable subscription as server-sent events (text/event-stream), for consumers that cannot hold a WebSocket.
//
//	GET /api/v1/namespaces/{ns}/subscriptions/{nameOrId}/stream
//	Last-Event-ID: 41                  everything up to sequence 41 is acknowledged; the stream goes on behind it
//
//	: heartbeat                        a comment, so that proxies and clients know that the stream is alive
//
//	id: 42                             the event's sequence
//	data: {"id":"…","sequence":42,…}   the event, as over a WebSocket
//
// What it guarantees: order, position and lease are those of every other consumer. One stream or connection at a time receives a subscription; the others
// stand by, with heartbeats alone. A slow client costs no memory.
//
// A stream cannot carry acknowledgements, so the next request does, with Last-Event-ID: browsers' EventSource sends it of its own accord. When readahead
// events (500 unless the query says otherwise) have been sent, the stream ends, and the client comes back with what it has seen. With the query's autoack an
// event counts as acknowledged when it is written, and the stream does not end.
package sse
