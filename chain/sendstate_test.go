package chain

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestNoncesStayWhole drives the state with everything that can happen to transactions, and checks that no nonce is given twice, none below the chain's, and that
// what is open below something in flight is always planned to be filled.
func TestNoncesStayWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64Range(0, 5).Draw(t, "start")
		s := newSendState(start)
		s.chainAt(rapid.Uint64Range(0, 8).Draw(t, "mined"))
		flying := map[uint64]*inflight{}
		give := func(t *rapid.T, n int, exact bool) {
			plan := s.plan()
			var items []*inflight
			add := func(nonce uint64) {
				if flying[nonce] != nil {
					t.Fatalf("nonce %d was given twice", nonce)
				}
				if nonce < s.mined {
					t.Fatalf("nonce %d was given below the chain's %d", nonce, s.mined)
				}
				item := &inflight{operation: uuid.New(), nonce: nonce}
				flying[nonce] = item
				items = append(items, item)
			}
			if exact {
				nonce := rapid.Uint64Range(0, s.next+4).Draw(t, "exact")
				free := flying[nonce] == nil && nonce >= s.mined
				if got := plan.giveExactly(nonce); got && !free || !got && free && !avoided(s, nonce) {
					t.Fatalf("nonce %d asked for: given %v, free %v", nonce, got, free)
				} else if got {
					add(nonce)
				}
			}
			for range n {
				add(plan.give())
			}
			for _, nonce := range plan.left(100) {
				add(nonce)
			}
			s.given(plan, items, false)
		}
		any := func(t *rapid.T) *inflight {
			list := s.below(^uint64(0))
			if len(list) == 0 {
				t.Skip("nothing in flight")
			}
			return rapid.SampledFrom(list).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"give":  func(t *rapid.T) { give(t, rapid.IntRange(0, 5).Draw(t, "n"), false) },
			"exact": func(t *rapid.T) { give(t, 1, true) },
			"refuse": func(t *rapid.T) { // an operation fails, or gets another nonce
				item := any(t)
				s.drop(item)
				delete(flying, item.nonce)
			},
			"foreign": func(t *rapid.T) {
				item := any(t)
				s.foreign(item.nonce)
				s.drop(item)
				delete(flying, item.nonce)
			},
			"mine": func(t *rapid.T) {
				s.chainAt(s.mined + rapid.Uint64Range(0, 6).Draw(t, "blocks"))
				for _, item := range s.below(s.mined) {
					s.drop(item)
					delete(flying, item.nonce)
				}
			},
			"reorganise": func(t *rapid.T) {
				s.chainAt(s.mined - rapid.Uint64Range(0, min(s.mined, 2)).Draw(t, "back"))
			},
			"forget foreign": func(*rapid.T) { s.due(time.Now().Add(time.Hour), time.Minute, time.Hour, 10) },
			"": func(t *rapid.T) {
				if len(flying) != s.count() {
					t.Fatalf("%d in flight, %d expected", s.count(), len(flying))
				}
				if s.next < s.mined {
					t.Fatalf("next %d is behind the chain's %d", s.next, s.mined)
				}
			},
		})
		give(t, 0, false)
		for nonce := s.mined; nonce < s.next; nonce++ {
			if flying[nonce] == nil && !avoided(s, nonce) {
				t.Fatalf("nonce %d is open between the chain's %d and the next %d", nonce, s.mined, s.next)
			}
		}
	})
}

func avoided(s *sendState, nonce uint64) bool {
	_, is := s.avoid[nonce]
	return is
}

func TestWhatIsDueIsSentAgainOnce(t *testing.T) {
	s := newSendState(0)
	now := time.Now()
	var items []*inflight
	for n := range uint64(30) {
		items = append(items, &inflight{nonce: n, offered: now, bumped: now, possible: true})
	}
	s.add(items...)
	if again, stuck := s.due(now.Add(time.Second), time.Minute, time.Hour, 100); len(again)+len(stuck) != 0 {
		t.Fatalf("%d and %d due at once", len(again), len(stuck))
	}
	s.chainAt(10)
	later := now.Add(2 * time.Minute)
	again, stuck := s.due(later, time.Minute, time.Hour, 15)
	if len(again) != 15 || len(stuck) != 0 || again[0].nonce != 10 || again[14].nonce != 24 {
		t.Fatalf("%d and %d due", len(again), len(stuck))
	}
	if again, _ := s.due(later, time.Minute, time.Hour, 15); len(again) != 5 {
		t.Fatalf("%d due after the first", len(again))
	}
	if n := s.refused(items[20], later, true); n != 1 {
		t.Fatalf("%d refusals", n)
	}
	again, stuck = s.due(later, time.Minute, time.Hour, 15)
	if len(again) != 0 || len(stuck) != 1 || stuck[0] != items[20] {
		t.Fatalf("%d and %d due after a refused fee", len(again), len(stuck))
	}
	// Far later the lowest are bumped, and only they.
	_, stuck = s.due(later.Add(2*time.Hour), time.Minute, time.Hour, 100)
	if len(stuck) == 0 || stuck[len(stuck)-1].nonce >= 10+stuckWindow {
		t.Fatalf("%d stuck", len(stuck))
	}
}

func TestWhatIsGoneBackTo(t *testing.T) {
	s := newSendState(0)
	now := time.Now()
	hash := func(n byte) common.Hash { return common.Hash{n} }
	item := &inflight{version: version{hash: hash(1), explicit: true}, hashes: []common.Hash{hash(1)}, cancelAt: never}
	s.add(item)
	if _, some := s.goingBack(item); some {
		t.Fatal("there is something before the first")
	}
	s.sent(item, hash(1), now)
	s.raised(item, hash(2), fees{}, now) // nobody has taken it
	s.replaced(item, hash(3), fees{}, false, false)
	s.reject(item, &rejection{hash: hash(2)}, now) // too late
	if len(s.rejections()) != 0 {
		t.Fatal("what is not sent any more is rejected")
	}
	s.reject(item, &rejection{hash: hash(3)}, now)
	if list := s.rejections(); len(list) != 1 || !s.planned() {
		t.Fatalf("rejected are %v", list)
	}
	if v, some := s.goingBack(item); !some || v.hash != hash(1) || !v.explicit {
		t.Fatalf("the one to go back to is %+v", v)
	}
	s.outbid(item, hash(4), fees{}, now)
	if s.reject(item, &rejection{hash: hash(4)}, now); !s.rest(item) {
		t.Fatal("it was noted before")
	}
	s.replaced(item, hash(5), fees{}, false, false)
	s.wentBack(item, hash(2), now, time.Minute)
	if r := s.replacing(item); r.hash != hash(2) || r.wished || !r.some || len(item.earlier) != 1 || len(item.hashes) != 5 || item.hashes[4] != hash(5) {
		t.Fatalf("it is %+v, before it %+v, all %v", r, item.earlier, item.hashes)
	}
	if _, stuck := s.due(now.Add(61*time.Second), time.Second, time.Minute, 10); len(stuck) != 0 {
		t.Fatal("its fee is raised at once")
	}
	s.replaced(item, hash(6), fees{}, true, false)
	if _, some := s.goingBack(item); some || !s.cancels(item, hash(6)) || s.cancels(item, hash(5)) {
		t.Fatal("a cancellation is taken back")
	}
}
