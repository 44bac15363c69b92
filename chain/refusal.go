package chain

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// refusalKind says what to do about an error of the node while reading.
type refusalKind int

const (
	refusedOther    refusalKind = iota // try again after a while
	refusedTooMuch                     // ask for less
	refusedTooOften                    // ask later
	refusedMissing                     // the node does not have that block, or not yet
)

// String is the value of the metric's label.
func (k refusalKind) String() string {
	return [...]string{"other", "too_much", "too_often", "missing"}[k]
}

// The words in which nodes and providers refuse; the codes are of no use, since everybody gives them another meaning. The first list that
// knows the text decides.
var refusalWords = []struct {
	kind  refusalKind
	words []string
}{
	{refusedTooOften, []string{
		"rate limit", "ratelimit", "too many requests", "request limit", "requests per", "per second", "compute units", "throughput", "capacity",
		"throttl", "quota", "credits",
	}},
	{refusedMissing, []string{
		"unknown block", "header not found", "block not found", "beyond current head", "beyond head", "cannot find block", "block is not available",
		"could not find block", "missing block", "after last accepted block", "unfinalized", "not yet available", "header for hash not found",
		"greater than latest", "beyond latest",
	}},
	{refusedTooMuch, []string{
		"more than", "too large", "too wide", "too many", "too big", "range", "response size", "size limit", "size exceed", "exceed", "limited to",
		"max results", "limit", "timeout", "timed out", "time out", "took too long", "deadline",
	}},
}

// kindOfRefusal tells what an error of the node means for the reader.
func kindOfRefusal(err error) refusalKind {
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, context.DeadlineExceeded):
		return refusedTooMuch
	case errors.Is(err, errMissingBlock):
		return refusedMissing
	}
	var status rpc.HTTPError
	if errors.As(err, &status) {
		switch status.StatusCode {
		case http.StatusTooManyRequests:
			return refusedTooOften
		case http.StatusRequestEntityTooLarge, http.StatusGatewayTimeout:
			return refusedTooMuch
		}
		err = errors.New(string(status.Body))
	}
	text := strings.ToLower(err.Error())
	for _, list := range refusalWords {
		for _, word := range list.words {
			if strings.Contains(text, word) {
				return list.kind
			}
		}
	}
	return refusedOther
}
