package delivery

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// The window against a model that knows only, for each event, whether it was delivered in this session and whether it was ever acknowledged.
func TestWindowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		foreign := map[int64]bool{} // filtered out
		for i := range int64(200) {
			foreign[i] = rapid.IntRange(0, 3).Draw(t, "kind") == 0
		}
		id := func(sequence int64) uuid.UUID { return uuid.UUID{0: byte(sequence), 1: byte(sequence >> 8), 15: 1} }
		var w window
		w.start(0, nil)
		w.limit = limit
		acked, flying := map[int64]bool{}, map[int64]bool{}
		next := int64(1) // what the reader reads next
		kept, keptBeyond := int64(0), []int64(nil)

		check := func() {
			want := int64(0)
			for s := int64(1); s <= w.scanned && (acked[s] || foreign[s]); s++ {
				want = s
			}
			if p := w.position(); p != want {
				t.Fatalf("position %d, want %d", p, want)
			}
			if w.open != len(flying) {
				t.Fatalf("%d open, want %d", w.open, len(flying))
			}
			if w.room() != max(0, limit-len(flying)) {
				t.Fatalf("room %d with %d in flight of %d", w.room(), len(flying), limit)
			}
			// What would be kept: everything acknowledged is below the position or in a span, and nothing else is.
			beyond := w.beyond()
			for s := int64(1); s < next+20; s++ {
				covered := s <= want
				for i := 0; i < len(beyond); i += 2 {
					covered = covered || beyond[i] <= s && s <= beyond[i+1]
				}
				if acked[s] && !covered {
					t.Fatalf("%d is acknowledged, but not in %d and %v", s, want, beyond)
				}
				if covered && !acked[s] && !foreign[s] {
					t.Fatalf("%d is not acknowledged, but in %d and %v", s, want, beyond)
				}
			}
		}
		someone := func(t *rapid.T) (int64, bool) {
			var list []int64
			for s := range flying {
				list = append(list, s)
			}
			slices.Sort(list)
			if len(list) == 0 {
				return 0, false
			}
			return rapid.SampledFrom(list).Draw(t, "event"), true
		}
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				if next >= 200 {
					return
				}
				switch {
				case foreign[next]:
					w.pass(next)
				case w.skips(next):
					if !acked[next] {
						t.Fatalf("%d is skipped, but was not acknowledged", next)
					}
					w.passAcked(next)
				case w.room() == 0:
					return
				default:
					if acked[next] {
						t.Fatalf("%d was acknowledged, and comes again", next)
					}
					w.deliver(next, id(next))
					flying[next] = true
				}
				next++
			},
			"ack": func(t *rapid.T) {
				if s, ok := someone(t); ok {
					key := id(s)
					if !w.ack(&key) {
						t.Fatalf("%d is in flight, but cannot be acknowledged", s)
					}
					acked[s] = true
					delete(flying, s)
					if w.ack(&key) {
						t.Fatalf("%d was acknowledged twice", s)
					}
				}
			},
			"ack the oldest": func(t *rapid.T) {
				if w.ack(nil) != (len(flying) > 0) {
					t.Fatalf("in flight: %v", flying)
				}
				if len(flying) > 0 {
					oldest := int64(1 << 60)
					for s := range flying {
						oldest = min(oldest, s)
					}
					acked[oldest] = true
					delete(flying, oldest)
				}
			},
			"nack": func(t *rapid.T) {
				if s, ok := someone(t); ok {
					if !w.nack(id(s)) {
						t.Fatalf("%d is in flight, but cannot be had again", s)
					}
					var returned []int64
					for other := range flying {
						if other >= s {
							returned = append(returned, other)
							delete(flying, other)
						}
					}
					next = w.scanned + 1
					if len(returned) > 0 && rapid.Bool().Draw(t, "late") { // an ack that crossed the nack
						slices.Sort(returned)
						late := rapid.SampledFrom(returned).Draw(t, "which")
						key := id(late)
						if !w.ack(&key) {
							t.Fatalf("the late acknowledgement of %d was refused", late)
						}
						acked[late] = true
					}
				}
			},
			"next session": func(*rapid.T) {
				w.reset()
				clear(flying)
				next = w.scanned + 1
			},
			"keep": func(*rapid.T) {
				kept, keptBeyond = w.position(), w.beyond()
				// A crash loses what was acknowledged after; here nothing was.
				var after window
				after.start(kept, keptBeyond)
				after.limit = limit
				w = after
				clear(flying)
				next = w.scanned + 1
			},
			"": func(*rapid.T) { check() },
		})
	})
}

func TestWindowIsBoundedBehindAGap(t *testing.T) {
	var w window
	w.start(0, nil)
	w.limit = 2
	n := int64(0)
	for w.room() > 0 {
		n++
		id := uuid.New()
		w.deliver(n, id)
		if n > 1 && !w.ack(&id) {
			t.Fatal("not in flight")
		}
		if n > 2*maxBeyond {
			t.Fatal("no bound")
		}
	}
	if w.position() != 0 || !slices.Equal(w.beyond(), []int64{2, n}) {
		t.Errorf("position %d, beyond %v", w.position(), w.beyond())
	}
	if !w.ack(nil) || w.position() != n || len(w.flight) != 0 {
		t.Errorf("position %d of %d, %d entries left", w.position(), n, len(w.flight))
	}
}

// TestWindowKeepsAcknowledgementsOverALostLease has the store know less than the window, and then more.
func TestWindowKeepsAcknowledgementsOverALostLease(t *testing.T) {
	t.Parallel()
	var w window
	w.resume(-1, nil)
	if w.position() != -1 {
		t.Fatalf("it starts at %d", w.position())
	}
	w.limit = 10
	ids := make([]uuid.UUID, 9)
	for i := range ids {
		ids[i] = uuid.New()
		w.deliver(int64(i+1), ids[i])
	}
	for _, i := range []int{0, 1, 2, 5, 6} {
		w.ack(&ids[i])
	}
	w.reset()
	w.resume(1, []int64{3, 3}) // the store has heard of 1 and 3
	if w.position() != 3 || !w.skips(6) || !w.skips(7) || w.skips(4) || w.skips(5) || w.skips(8) {
		t.Errorf("position %d, skips %v", w.position(), w.skip)
	}
	w.resume(6, []int64{8, 8}) // another replica had it in between
	if w.position() != 6 || !w.skips(7) || !w.skips(8) || w.skips(9) {
		t.Errorf("position %d, skips %v", w.position(), w.skip)
	}
}
