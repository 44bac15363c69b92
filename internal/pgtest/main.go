package pgtest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main is for TestMain of packages with goroutines: it runs the tests, stops this binary's server, and fails if anything of
// the tests is still running.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(stopping{m}, options...)
}

type stopping struct{ tests *testing.M }

// Run implements goleak.TestingM.
func (s stopping) Run() int {
	code := s.tests.Run()
	if !used.Load() {
		return code
	}
	if r, err := server(); err == nil {
		_ = r.db.Close()
		r.stop()
	}
	return code
}
