package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
)

const defaultServiceURL = "http://127.0.0.1:5000"

func newListen() *cobra.Command {
	var service, namespace, filter string
	var count int
	var keep, ephemeral bool
	cmd := &cobra.Command{
		Use:   "listen [SUBSCRIPTION]",
		Short: "Receive the events of a subscription, print and acknowledge them",
		Long: "Receive the events of a durable subscription over the WebSocket: each is printed as one line of JSON and then acknowledged, so that it does not come\n" +
			"again. With --ephemeral there is no subscription: events are received from now on, and nothing is remembered.",
		Example: "  pactwire listen app --count 2\n  pactwire listen --ephemeral --filter blockchain_event_received",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == ephemeral {
				return usageError{errors.New("listen takes the name of a subscription, or --ephemeral")}
			}
			start := map[string]any{"type": "start", "namespace": namespace, "autoack": false}
			if ephemeral {
				start["ephemeral"], start["filter"] = true, map[string]string{"events": filter}
			} else {
				start["name"] = args[0]
			}
			return listen(cmd.Context(), service, start, count, keep, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&service, "url", "", "the service's `URL` (PACTWIRE_URL; default "+defaultServiceURL+")")
	flags.StringVar(&namespace, "namespace", "default", "`name` of the namespace")
	flags.IntVar(&count, "count", 0, "stop after this `number` of events; 0 goes on until Ctrl-C")
	flags.BoolVar(&keep, "no-ack", false, "do not acknowledge: the events come again to the next listener")
	flags.BoolVar(&ephemeral, "ephemeral", false, "receive without a subscription")
	flags.StringVar(&filter, "filter", "", "with --ephemeral: regular `expression` on the event's type")
	return cmd
}

// listen prints events until count is reached, the connection ends or ctx does.
func listen(ctx context.Context, service string, start map[string]any, count int, keep bool, out io.Writer) error {
	address, header, err := socketAddress(service)
	if err != nil {
		return usageError{err}
	}
	socket, response, err := websocket.DefaultDialer.DialContext(ctx, address, header)
	if err != nil {
		if response != nil {
			return fmt.Errorf("connect to %s: the service answered %s", address, response.Status)
		}
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	if err := socket.WriteJSON(start); err != nil {
		return fmt.Errorf("start the subscription: %w", err)
	}
	for n := 0; count == 0 || n < count; {
		_, frame, err := socket.ReadMessage()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive events: %w", err)
		}
		events, err := eventsOf(frame)
		if err != nil {
			return err
		}
		for _, event := range events {
			if count > 0 && n == count {
				break // the rest of a batch comes again
			}
			n++
			if _, err := fmt.Fprintln(out, strings.TrimSpace(string(event.text))); err != nil {
				return fmt.Errorf("print an event: %w", err)
			}
			if keep {
				continue
			}
			// Only what was printed is acknowledged: an event that could not be written comes again.
			if err := socket.WriteJSON(map[string]string{"type": "ack", "id": event.id}); err != nil {
				return fmt.Errorf("acknowledge an event: %w", err)
			}
		}
	}
	return socket.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")) //nolint:wrapcheck // good-bye
}

type receivedEvent struct {
	id   string
	text json.RawMessage
}

// eventsOf returns the events of a frame: one, or those of a batch.
func eventsOf(frame []byte) ([]receivedEvent, error) {
	var f struct {
		ID, Type, Error string
		Events          []json.RawMessage
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	switch f.Type {
	case "protocol_error":
		return nil, errors.New(f.Error)
	case "event_batch":
	default:
		return []receivedEvent{{f.ID, frame}}, nil
	}
	events := make([]receivedEvent, len(f.Events))
	for i, text := range f.Events {
		var event struct{ ID string }
		if err := json.Unmarshal(text, &event); err != nil {
			return nil, fmt.Errorf("read an event of a batch: %w", err)
		}
		events[i] = receivedEvent{event.ID, text}
	}
	return events, nil
}

// socketAddress turns the service's address into that of its WebSocket; user and password in it become credentials.
func socketAddress(service string) (string, http.Header, error) {
	if service == "" {
		service = os.Getenv("PACTWIRE_URL")
	}
	if service == "" {
		service = defaultServiceURL
	}
	u, err := url.Parse(service)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", nil, fmt.Errorf("--url must be like %s", defaultServiceURL)
	}
	header := http.Header{}
	if u.User != nil {
		password, _ := u.User.Password()
		r := http.Request{Header: header}
		r.SetBasicAuth(u.User.Username(), password)
		u.User = nil
	}
	u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http")
	return strings.TrimSuffix(u.String(), "/") + "/ws", header, nil
}
