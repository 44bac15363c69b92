package chain

import (
	"math/rand/v2"
	"slices"
)

// Nodes disagree, lag and reorganise near the head; what lies far behind it is the same for all of them, and a node that has it wrong has much of it wrong. So catch-up
// verifies the blocks near the head one by one, and of what is far from it a sample of each range. A sample that finds something has the whole range verified.

const (
	// verifyBlocks is how many blocks before the live part catch-up verifies one by one, unless it is told otherwise.
	verifyBlocks = 2000
	// sampleBlocks is how many blocks of a range before those are verified, and again so many of those that have logs.
	sampleBlocks = 8
	// receiptsPerRange is of how many blocks of one range receipts are read because a bloom filter says that logs may be missing: it is mostly wrong.
	receiptsPerRange = 32
)

// toVerify lists the blocks from first to last whose headers are needed besides the logs: from exact on, of all where filters are of use, else of all with logs; before,
// a sample of both, and of those whose logs do not tell when they were mined.
func toVerify(logs []chainLog, first, last, exact int64, filters bool) []int64 {
	var numbers, sample []int64
	if filters {
		for n := max(first, exact); n <= last; n++ {
			numbers = append(numbers, n)
		}
		for before := min(last, exact-1) - first + 1; before > 0 && len(sample) < sampleBlocks; {
			sample = append(sample, first+rand.Int64N(before)) //nolint:gosec // no secret
		}
	}
	var withLogs []int64
	for i := range logs {
		switch l := &logs[i]; {
		case l.block > last, i > 0 && logs[i-1].block == l.block && (l.time != 0 || logs[i-1].time == 0):
		case l.block >= exact || l.time == 0:
			numbers = append(numbers, l.block)
		default:
			withLogs = append(withLogs, l.block)
		}
	}
	for n := min(len(withLogs), sampleBlocks); n > 0; n-- {
		sample = append(sample, withLogs[rand.IntN(len(withLogs))]) //nolint:gosec // no secret
	}
	numbers = append(numbers, sample...)
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
