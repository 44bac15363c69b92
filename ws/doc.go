// Package ws carries the delivery of events over WebSockets, at /ws and /api/v1/namespaces/{ns}/ws.
//
//	GET /ws?namespace=default&name=orders             a durable subscription, started by the query
//	GET /ws?namespace=default&ephemeral&filter.events=message_confirmed
//	GET /ws                                           nothing yet: the client sends start frames
//
// What it guarantees: what is wrong with the query is answered before the upgrade, as a problem body with its status; what is wrong with a frame, as a
// protocol_error frame. A client that says nothing for a minute, not even a pong, is dropped. A slow client costs no memory: nothing is queued for it.
// A browser may connect only from the service's own origin, from loopback, or from an origin that is configured.
//
// Each connection has one reader. Frames are written by the subscriptions' dispatchers themselves, one burst at a time under the connection's lock:
// there is no queue between them and the socket, so that what they wait for is the client itself.
package ws
