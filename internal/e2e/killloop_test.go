package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pactwire/pactwire/devnet"
)

// killTime is how long each form of the kill loop goes on: seconds, and what PACTWIRE_TEST_KILLLOOP says in the long form (make killloop).
func killTime(t *testing.T) time.Duration {
	t.Helper()
	if given := os.Getenv("PACTWIRE_TEST_KILLLOOP"); given != "" {
		d, err := time.ParseDuration(given)
		must(t, err)
		return d
	}
	return 5 * time.Second
}

// TestKillLoop has something go away again and again, while numbered events are emitted and an application consumes them. None is lost and none is doubled.
func TestKillLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, form := range []struct {
		name     string
		replicas int
		strike   func(*cluster, *emitter)
	}{
		{"service", 1, killOne},
		{"replicas", 3, killOne},
		{"database", 1, func(c *cluster, _ *emitter) {
			c.stopPostgres()
			c.startPostgres()
		}},
		{"chain", 1, func(c *cluster, e *emitter) {
			e.mu.Lock()
			defer e.mu.Unlock()
			c.restartChain()
		}},
		{"connections", 2, spoilConnections},
	} {
		t.Run(form.name, func(t *testing.T) {
			if os.Getenv("PACTWIRE_TEST_KILLLOOP") == "" {
				t.Parallel()
			}
			c := newCluster(t, form.replicas)
			emitting, consuming := emitNumbers(c, 10*time.Millisecond), consumeNumbers(c)
			strikes := 0
			for end := time.Now().Add(killTime(t)); time.Now().Before(end); strikes++ {
				time.Sleep(time.Second + rand.N(min(4*time.Second, killTime(t)/4))) // the test's own rhythm
				form.strike(c, emitting)
			}
			last := emitting.stop()
			if last < 100 {
				t.Errorf("only %d events were emitted", last)
			}
			consuming.finish(last)
			c.recordedOnce(last)
			t.Logf("%d strikes", strikes)
		})
	}
}

// killOne kills a replica and starts it again.
func killOne(c *cluster, _ *emitter) {
	r := c.replicas[rand.N(len(c.replicas))]
	r.kill()
	r.begin()
	if len(c.replicas) == 1 {
		r.awaitReady() // killing it while it starts over and over would be no test of anything
	}
}

// spoilConnections delays, cuts or half-opens the connections to the node, to the database or to the consumer for a while.
func spoilConnections(c *cluster, _ *emitter) {
	proxies := []*faultyProxy{c.node, c.database}
	for _, r := range c.replicas {
		proxies = append(proxies, r.front)
	}
	p := proxies[rand.N(len(proxies))]
	switch rand.N(4) {
	case 0:
		p.delay(50 * time.Millisecond)
	case 1:
		p.halfOpen()
	case 2:
		p.cutAfter(20_000)
	case 3:
		p.reset()
	}
	time.Sleep(500*time.Millisecond + rand.N(2*time.Second)) // the trouble's own time
	p.heal()
}

// recordedOnce checks that the history holds each event once.
func (c *cluster) recordedOnce(want int) {
	c.t.Helper()
	db := openSQL(c.t, c.postgres.URL("pactwire"))
	defer db.Close()
	var events, records, values int
	must(c.t, db.QueryRow(`SELECT count(*), count(DISTINCT CAST(body AS json) #>> '{output,value}') FROM events WHERE type = 'blockchain_event_received'`).
		Scan(&events, &values))
	must(c.t, db.QueryRow(`SELECT count(*) FROM blockchain_events WHERE NOT removed`).Scan(&records))
	if events != want || values != want || records != want {
		c.t.Errorf("the history holds %d events with %d values and %d records, want %d of each", events, values, records, want)
	}
}

// TestReplicasShareTheWork starts three replicas, and kills them one after the other for good: whoever is left does it all, and each is served.
func TestReplicasShareTheWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program several times")
	}
	t.Parallel()
	c := newCluster(t, 3)
	emitting, consuming := emitNumbers(c, 20*time.Millisecond), consumeNumbers(c)
	for _, r := range c.replicas[:2] {
		seen := consuming.last()
		eventually(t, time.Minute, "events arrive", func() bool { return consuming.last() > seen+50 }, consuming)
		holders := c.leaseHolders()
		r.kill()
		died := time.Now()
		seen = consuming.last()
		eventually(t, time.Minute, "events arrive after a death", func() bool { return consuming.last() > seen+60 }, consuming)
		// Within the lease time, and what the consumer needs to find a replica that lives; the machine may be busy.
		if took := time.Since(died); took > clusterLease+15*time.Second {
			t.Errorf("it took %s until events came again", took)
		}
		t.Logf("lease holders before: %s, after: %s", holders, c.leaseHolders())
	}
	last := emitting.stop()
	consuming.finish(last)
	c.recordedOnce(last)
}

// leaseHolders shows how many leases are held.
func (c *cluster) leaseHolders() string {
	db := openSQL(c.t, c.postgres.URL("pactwire"))
	defer db.Close()
	rows, err := db.Query(`SELECT name, epoch FROM leases WHERE expires > now() ORDER BY name`)
	must(c.t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		var epoch int64
		must(c.t, rows.Scan(&name, &epoch))
		all = append(all, fmt.Sprintf("%s#%d", name, epoch))
	}
	must(c.t, rows.Err())
	return strings.Join(all, " ")
}

// pgFolder is a folder for a private server.
func pgFolder(t *testing.T) string {
	t.Helper()
	if _, err := devnet.FindPostgres("", ""); err != nil {
		t.Skipf("no PostgreSQL programs: %v", err)
	}
	return t.TempDir()
}
