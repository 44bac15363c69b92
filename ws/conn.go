package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
)

const (
	readLimit    = 64 << 10         // of one frame of a client
	pingInterval = 25 * time.Second // how often the server asks whether the client is there
	silence      = 60 * time.Second // how long a client may say nothing, and how long a burst may take to be written
	controlWait  = 5 * time.Second  // for pings, pongs and close frames
	closeWait    = time.Second      // for the client to answer a close frame
	maxSessions  = 256              // subscriptions started on one connection
)

// conn is one client's connection.
type conn struct {
	server    *Server
	fixed     string // the namespace that the address fixes, if it does
	namespace string // for starts that name none
	authorize func(namespace string) error
	socket    *websocket.Conn
	burst     *burstConn

	writing sync.Mutex // one burst or one error at a time
	heard   atomic.Int64
	closing chan struct{} // closed when the closing handshake begins
	once    sync.Once     // closes closing

	mu       sync.Mutex
	sessions []*delivery.Session
	over     bool           // no tasks are begun any more
	tasks    sync.WaitGroup // what runs beside the reader
}

func newConn(s *Server, fixed, namespace string) *conn {
	return &conn{server: s, fixed: fixed, namespace: namespace, closing: make(chan struct{})}
}

func (c *conn) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// serve reads until the connection ends. prepared, if there is one, is started first.
func (c *conn) serve(ctx context.Context, prepared *delivery.Prepared) {
	ctx, cancel := context.WithCancel(ctx)
	if !c.server.opened(c) {
		c.closeWith(websocket.CloseGoingAway, "the service is stopping")
	}
	defer func() {
		// What was acknowledged before the end has been read by now: the sessions may go.
		c.mu.Lock()
		sessions := c.sessions
		c.sessions, c.over = nil, true
		c.mu.Unlock()
		for _, s := range sessions {
			s.Close()
		}
		_ = c.burst.Conn.Close()
		cancel()
		c.tasks.Wait()
		c.server.closed(c)
	}()
	c.socket.SetReadLimit(readLimit)
	c.listen()
	c.socket.SetPongHandler(func(string) error { c.listen(); return nil })
	answer := c.socket.PingHandler()
	c.socket.SetPingHandler(func(data string) error { c.listen(); return answer(data) })
	c.tasks.Go(func() { c.tend(ctx, cancel) })

	if prepared != nil {
		if err := c.begin(ctx, prepared); err != nil {
			c.refuse(ctx, websocket.ClosePolicyViolation, err)
		}
	}
	var frame bytes.Buffer
	for {
		frame.Reset()
		_, r, err := c.socket.NextReader()
		if err == nil {
			_, err = frame.ReadFrom(r)
		}
		if err != nil {
			if !websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived) {
				c.server.log.DebugContext(ctx, "a WebSocket connection broke", "error", err)
			}
			return
		}
		c.listen()
		if c.isClosing() {
			// Acknowledgements that were on their way still count; nothing is started any more.
			c.late(frame.Bytes())
			continue
		}
		c.handle(ctx, frame.Bytes())
	}
}

// listen gives the client another while to say something.
func (c *conn) listen() {
	now := time.Now()
	// Setting a deadline costs as much as reading a small frame: once a second will do.
	if last := c.heard.Load(); now.UnixNano()-last > int64(time.Second) && c.heard.CompareAndSwap(last, now.UnixNano()) {
		_ = c.socket.SetReadDeadline(now.Add(silence))
	}
}

// tend asks the client now and then whether it is there, and cuts it off when it does not finish the closing handshake.
func (c *conn) tend(ctx context.Context, cut func()) {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// A ping that cannot be written behind a slow burst is no reason to drop the client: only silence is.
			_ = c.socket.WriteControl(websocket.PingMessage, nil, time.Now().Add(controlWait))
		case <-c.closing:
			select {
			case <-ctx.Done():
			case <-time.After(closeWait):
				cut()
				_ = c.burst.Conn.Close()
			}
			return
		}
	}
}

// deliver writes frames to the client; it is called by the dispatchers of the subscriptions.
func (c *conn) deliver(_ context.Context, frames [][]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.isClosing() {
		return errors.New("the connection is closing")
	}
	return c.write(frames...)
}

// write writes frames as one burst. c.writing is held.
func (c *conn) write(frames ...[]byte) error {
	c.burst.hold(time.Now().Add(silence))
	var err error
	for _, frame := range frames {
		if err = c.socket.WriteMessage(websocket.TextMessage, frame); err != nil {
			break
		}
	}
	if err = errors.Join(err, c.burst.release()); err != nil {
		_ = c.burst.Conn.Close() // the reader notices
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}

// complain sends a protocol_error frame, and returns what it says.
func (c *conn) complain(ctx context.Context, err error) string {
	message := "Something went wrong inside the service."
	var known *pactwire.Error
	if errors.As(err, &known) && known.Kind != pactwire.KindInternal {
		message = known.Message
	} else {
		c.server.log.ErrorContext(ctx, "serve a WebSocket connection", "error", err)
	}
	frame, err := json.Marshal(ProtocolError{Type: typeProtocolError, Error: message})
	if err != nil {
		return message // two strings
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.write(frame)
	return message
}

// refuse sends a protocol_error frame and closes the connection.
func (c *conn) refuse(ctx context.Context, code int, err error) {
	c.closeWith(code, c.complain(ctx, err))
}

// closeWith begins the closing handshake. The reader goes on until the client has answered, or for a moment.
func (c *conn) closeWith(code int, reason string) {
	const longest = 120 // of 125 bytes of a control frame
	c.once.Do(func() {
		for len(reason) > longest {
			_, size := utf8.DecodeLastRuneInString(reason)
			reason = reason[:len(reason)-size]
		}
		_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(controlWait))
		close(c.closing)
	})
}

// handle serves one frame of the client.
func (c *conn) handle(ctx context.Context, data []byte) {
	var f ClientFrame
	if err := json.Unmarshal(data, &f); err != nil {
		c.refuse(ctx, websocket.CloseUnsupportedData, pactwire.Errorf(pactwire.KindInvalid, "bad_frame", "The frame is not a JSON object with fields of the right types."))
		return
	}
	switch f.Type {
	case typeAck, typeNack:
		if !c.settle(f) {
			c.complain(ctx, pactwire.Errorf(pactwire.KindInvalid, "not_in_flight", "%s: event %q is not in flight on this connection.", f.Type, f.ID))
		}
	case typeStart:
		if err := c.start(ctx, f); err != nil {
			c.refuse(ctx, websocket.ClosePolicyViolation, err)
		}
	default:
		c.refuse(ctx, websocket.ClosePolicyViolation, pactwire.Errorf(pactwire.KindInvalid, "bad_frame", "Frames of type %q are not known; there are start, ack and nack.", f.Type))
	}
}

// late takes acknowledgements that arrive while the connection closes.
func (c *conn) late(data []byte) {
	var f ClientFrame
	if err := json.Unmarshal(data, &f); err == nil && f.Type == typeAck {
		c.settle(f)
	}
}

// settle acknowledges an event, or asks for it again. It returns false when none of the sessions meant has it in flight.
func (c *conn) settle(f ClientFrame) bool {
	var id *uuid.UUID
	if f.ID != "" || f.Type == typeNack {
		parsed, err := uuid.Parse(f.ID)
		if err != nil {
			return false
		}
		id = &parsed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if !f.Subscription.names(s.Ref()) {
			continue
		}
		if f.Type == typeNack && s.Nack(*id) || f.Type == typeAck && s.Ack(id) {
			return true
		}
	}
	return false
}

func (c *conn) start(ctx context.Context, f ClientFrame) error {
	namespace, err := settleNamespace(f.Namespace, c.fixed)
	if err != nil {
		return err
	}
	if namespace == "" {
		namespace = c.namespace
	}
	if err := c.authorize(namespace); err != nil {
		return err
	}
	r := delivery.StartRequest{Namespace: namespace, Name: f.Name, Ephemeral: f.Ephemeral, AutoAck: f.AutoAck}
	if r.Filter, err = delivery.ParseFilter(f.Filter); err != nil {
		return err //nolint:wrapcheck // it is worded for the client
	}
	if r.Options, err = delivery.ParseOptions(f.Options); err != nil {
		return err //nolint:wrapcheck // it is worded for the client
	}
	prepared, err := c.server.manager.Prepare(ctx, r)
	if err != nil {
		return err //nolint:wrapcheck // it is worded for the client
	}
	return c.begin(ctx, prepared)
}

// begin starts a session on this connection.
func (c *conn) begin(ctx context.Context, prepared *delivery.Prepared) error {
	ref := prepared.Ref()
	// The lock is held until the session is listed, so that an acknowledgement of its first event finds it.
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if s.Ref().ID == ref.ID {
			return pactwire.Conflict("already_started", "Subscription %q is already started on this connection.", ref.Name)
		}
	}
	if len(c.sessions) >= maxSessions {
		return pactwire.Errorf(pactwire.KindInvalid, "too_many_subscriptions", "At most %d subscriptions can be started on one connection.", maxSessions)
	}
	session, err := prepared.Start(ctx, delivery.Consumer{
		Deliver: c.deliver,
		Ended:   func(err error) { c.ended(context.WithoutCancel(ctx), err) },
	})
	if err != nil {
		return err //nolint:wrapcheck // it is worded for the client
	}
	c.sessions = append(c.sessions, session)
	return nil
}

// ended is told when a session was ended from the other side.
func (c *conn) ended(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.tasks.Go(func() { c.refuse(ctx, websocket.ClosePolicyViolation, err) })
	}
}
