// Package webhook delivers events by posting them to an address that the subscription names.
//
//	feed (leading) ──Push──► post ──2xx──► acknowledged
//	                          │  ▲
//	           anything else  ▼  │ back-off with jitter, or what Retry-After asks for
//	                         pause          tries used up ──► dead letters, and on to the next event
//
// What it guarantees: events are posted one after the other, in order, each until the receiver answers 2xx or the tries are used up; what is given up is kept
// as a dead letter, in the transaction that moves the position. A subscription is posted from one process at a time, and needs no connection. Each request is
// signed (Standard Webhooks 1.0), with every secret that the subscription has. Redirects are not followed. Unless the configuration allows it, no request
// goes to this machine or to a private network, whatever a name resolves to at that moment: the address is checked when it is dialled.
//
// What it does not: a receiver may see an event twice, when its answer got lost; the header webhook-id is the same then. Proxies of the environment are not
// used, since who dials then could not be told where not to.
package webhook
