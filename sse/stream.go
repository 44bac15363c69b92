package sse

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/pactwire/pactwire/delivery"
)

const (
	writeWait = 60 * time.Second // for a client to take what is written
	endWait   = 5 * time.Second
	maxKept   = 256 << 10 // of a buffer, between two bursts
	// reconnect is what clients wait before they come back, in milliseconds. Ending is part of the protocol here, so it is short.
	reconnect = "100"
)

// stream is one answer under way.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	over    chan struct{}

	mu     sync.Mutex // one writer at a time
	ended  bool
	left   int // events until the stream ends for an acknowledgement; 0: it does not
	buffer bytes.Buffer
}

var errOver = errors.New("the stream is over")

// begin sends the head.
func (st *stream) begin() error {
	// The server's own limits are those of requests that come to an end.
	_ = st.control.SetReadDeadline(time.Time{})
	h := st.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers answers would gather for ever
	st.w.WriteHeader(http.StatusOK)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.buffer.WriteString("retry: " + reconnect + "\n\n")
	return st.flush()
}

// end lets nothing be written any more, and has the request end.
func (st *stream) end() {
	// What is being written to a client that does not take it must not hold the end up.
	_ = st.control.SetWriteDeadline(time.Now())
	st.mu.Lock()
	defer st.mu.Unlock()
	st.finish()
	_ = st.control.SetWriteDeadline(time.Now().Add(endWait)) // the answer's own end is still to be written
}

// finish ends the stream. st.mu is held.
func (st *stream) finish() {
	if !st.ended {
		st.ended = true
		close(st.over)
	}
}

// flush writes what is gathered. st.mu is held.
func (st *stream) flush() error {
	_ = st.control.SetWriteDeadline(time.Now().Add(writeWait)) // a connection without deadlines is a test's
	_, err := st.w.Write(st.buffer.Bytes())
	if err == nil {
		err = st.control.Flush()
	}
	st.buffer.Reset()
	if st.buffer.Cap() > maxKept {
		st.buffer = bytes.Buffer{}
	}
	if err != nil {
		st.finish()
	}
	return err //nolint:wrapcheck // only whether it failed counts
}

func (st *stream) comment(text string) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return errOver
	}
	st.buffer.WriteString(": " + text + "\n\n")
	return st.flush()
}

// deliver writes events; it is called by the subscription's dispatcher.
func (st *stream) deliver(_ context.Context, events []delivery.Outgoing) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return errOver
	}
	for i := range events {
		st.buffer.WriteString("id: ")
		st.buffer.WriteString(strconv.FormatInt(events[i].Sequence, 10))
		st.buffer.WriteString("\ndata: ")
		for _, b := range events[i].Body {
			if b == '\n' || b == '\r' { // white space between the tokens of JSON, but the end of a line here
				b = ' '
			}
			st.buffer.WriteByte(b)
		}
		st.buffer.WriteString("\n\n")
	}
	if err := st.flush(); err != nil {
		return err
	}
	if st.left > 0 {
		if st.left -= len(events); st.left <= 0 {
			st.finish()
		}
	}
	return nil
}
