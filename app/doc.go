// Package app is the process: its configuration, what is wired to what, and the order in which things start and stop. It is the only package that knows all
// others, and nothing but the wiring is in it, so that a test or another binary can run the whole service with New and Run.
//
//	flags > PACTWIRE_* > YAML file > defaults ──Load──► Config ──New──► App ──Run(ctx)──► until ctx ends
//
// What it guarantees: a setting that it does not know is refused and never ignored. The HTTP server answers /livez from the first moment and everything else as
// soon as database, migrations, chains and pin contracts are there; it starts without them and keeps trying. When ctx ends, requests under way are finished,
// sockets are closed with a reason, positions are written, and Run returns within the drain time.
//
// What it does not: it does not own the embedded chain and database of `pactwire dev`; whoever started those stops them after Run.
package app
