package store

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// connector makes connections whose planner goes by indexes.
//
// A prepared statement is planned once it has been used a few times, and keeps that plan: on a young database while its tables are nearly empty, and on any other
// perhaps when the outbox happens to be. The planner prefers then to read whole tables, and the statement does so for as long as the connection lives, or until the
// table is analysed. Everything here is found by an index, so reading whole tables is what it may do only where there is none. Compiling statements
// (JIT) never pays for what takes less than a millisecond, and the cost that stands for "only where there is no other way" would bring it about.
type connector struct{ driver.Connector }

const sqlPlanner = `SET enable_seqscan = off; SET jit = off`

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // lib/pq's own, which wrap classifies
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, sqlPlanner, nil); err != nil { //nolint:forcetypeassert // lib/pq's connections are
		_ = conn.Close()
		return nil, fmt.Errorf("set the planner up: %w", err)
	}
	return conn, nil
}
