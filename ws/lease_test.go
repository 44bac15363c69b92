package ws_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// Another owner of the lease, as after a long pause of this process: what is acknowledged here from then on must not move the subscription.
func TestLostLeaseStopsDeliveryUntilItIsBack(t *testing.T) {
	ctx, url := context.Background(), pgtest.New(t)
	raw, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	n := newNode(t, url)
	sub := n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":2}`)
	n.append(4)
	c := n.dial("/ws?namespace=default&name=sub")
	got := c.expect(1, 2)
	c.ack(got[0])
	c.expect(3)
	eventually(t, "the position is 1", func() bool { return n.position("sub") == 1 })

	var epoch int64
	err = raw.QueryRowContext(ctx, `UPDATE leases SET owner = gen_random_uuid(), epoch = epoch + 1, expires = now() + interval '1 second'
		WHERE name = $1 RETURNING epoch`, store.LeaseSubscription(sub.ID)).Scan(&epoch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.db.ClaimSubscription(ctx, sub.ID, epoch); err != nil {
		t.Fatal(err)
	}
	c.ack(got[1]) // the write is fenced off; the acknowledgement counts once the lease is back, unless the loss was noticed before it
	var back frame
	for back = c.next(); back.Sequence == 4 || back.Type == "protocol_error"; back = c.next() { // before, or after, the loss was noticed
		if p := n.position("sub"); p != 1 {
			t.Errorf("the position is %d although the lease is another's", p)
		}
	}
	switch back.Sequence {
	case 2:
		c.ack(back)
		c.expect(3, 4)
	case 3:
		c.expect(4)
		eventually(t, "the position is 2", func() bool { return n.position("sub") == 2 })
	default:
		t.Fatalf("unexpected %+v", back)
	}
}

// A connection to the database that breaks costs time, no events.
func TestBrokenDatabaseConnections(t *testing.T) {
	ctx, url := context.Background(), pgtest.New(t)
	raw, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	n := newNode(t, url)
	n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":5}`)
	c := n.dial("/ws?namespace=default&name=sub")
	seen := int64(0)
	for range 5 {
		n.append(40)
		for range 20 {
			f := c.next()
			if f.Sequence > seen+1 {
				t.Fatalf("after %d came %d", seen, f.Sequence)
			}
			seen = f.Sequence
			c.ack(f)
		}
		_, err := raw.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the database can be used again", func() bool { return n.db.Ping(ctx) == nil })
	}
	for seen < 200 {
		f := c.next()
		if f.Sequence > seen+1 {
			t.Fatalf("after %d came %d", seen, f.Sequence)
		}
		seen = f.Sequence
		c.ack(f)
	}
	eventually(t, "the position is 200", func() bool { return n.position("sub") == 200 })
}
