package chain

// nonces plans the giving of nonces. Holes are used first.
type nonces struct {
	holes []uint64
	next  uint64
	taken map[uint64]struct{} // given out of turn, because they were asked for
	state *sendState
}

// plan begins the giving of nonces. At the top, nonces that were given and are free again are taken back, so that only holes below something
// in flight remain.
func (s *sendState) plan() *nonces {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &nonces{next: s.next, taken: map[uint64]struct{}{}, state: s}
	if !s.gaps {
		return n
	}
	for n.next > s.mined && s.freeLocked(n.next-1) {
		n.next--
	}
	for i := s.mined; i < n.next; i++ {
		if s.freeLocked(i) {
			n.holes = append(n.holes, i)
		}
	}
	s.gaps = len(n.holes) > 0
	s.next = n.next
	return n
}

func (s *sendState) freeLocked(nonce uint64) bool {
	_, avoided := s.avoid[nonce]
	return s.byN[nonce] == nil && !avoided
}

func (n *nonces) free(nonce uint64) bool {
	if _, taken := n.taken[nonce]; taken {
		return false
	}
	n.state.mu.Lock()
	defer n.state.mu.Unlock()
	return nonce >= n.state.mined && n.state.freeLocked(nonce)
}

// give returns the next free nonce.
func (n *nonces) give() uint64 {
	for len(n.holes) > 0 {
		nonce := n.holes[0]
		n.holes = n.holes[1:]
		if n.free(nonce) {
			n.taken[nonce] = struct{}{}
			return nonce
		}
	}
	for !n.free(n.next) {
		n.next++
	}
	n.taken[n.next] = struct{}{}
	n.next++
	return n.next - 1
}

// giveExactly gives this nonce; false when it is used up or in flight.
func (n *nonces) giveExactly(nonce uint64) bool {
	if !n.free(nonce) {
		return false
	}
	n.taken[nonce] = struct{}{}
	return true
}

// left are the holes that are still open below a nonce in flight, at most limit of them.
func (n *nonces) left(limit int) []uint64 {
	var open []uint64
	for _, nonce := range n.holes {
		if len(open) < limit && n.free(nonce) {
			open = append(open, nonce)
		}
	}
	return open
}

// given makes the plan true, after it was stored. unused says that not all of its nonces were.
func (s *sendState) given(n *nonces, items []*inflight, unused bool) {
	s.add(items...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, n.next)
	s.gaps = s.gaps || unused
}
