package delivery

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	pactwire "github.com/pactwire/pactwire"
)

const maxReadAhead = math.MaxUint16

// Options says how a subscription is delivered.
type Options struct {
	FirstEvent string `json:"firstEvent"`          // -1 (oldest), or the sequence after which it starts; before it is resolved also oldest, newest, or empty
	ReadAhead  *int   `json:"readAhead,omitempty"` // events that may be in flight; 0 and 1 both mean one at a time
	WithData   bool   `json:"withData"`            // put the values of a message's data into its event

	Batch bool `json:"batch,omitempty"` // deliver several events at once, at most readAhead, and acknowledge them together
	// BatchTimeout is how long a batch may wait for more events. It is an upper bound, and kept by not waiting at all: a batch is what has gathered while the
	// one before it was under way.
	BatchTimeout string `json:"batchTimeout,omitempty"`

	*Webhook // of the transport webhooks; nil for others
}

// defaultBatch is the readAhead of batches where none is given.
const defaultBatch = 50

// ParseOptions reads options as clients write them. firstEvent may be a number or a string. An option that is not known is an error.
func ParseOptions(raw json.RawMessage) (Options, error) {
	var o Options
	if len(raw) == 0 {
		return o, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return o, pactwire.Invalid("options", "is not a JSON object")
	}
	for name, value := range fields {
		if err := o.set(name, value); err != nil {
			return Options{}, err
		}
	}
	return o, nil
}

func (o *Options) set(name string, value json.RawMessage) error {
	path := "options." + name
	if string(value) == "null" {
		return nil
	}
	switch name {
	case "firstEvent":
		first := string(value)
		if value[0] == '"' {
			if err := json.Unmarshal(value, &first); err != nil {
				return pactwire.Invalid(path, "is not a string")
			}
		}
		return o.SetFirstEvent(first)
	case "readAhead":
		return o.SetReadAhead(string(value))
	case "withData":
		if err := json.Unmarshal(value, &o.WithData); err != nil {
			return pactwire.Invalid(path, "must be true or false")
		}
		return nil
	case "batch":
		if err := json.Unmarshal(value, &o.Batch); err != nil {
			return pactwire.Invalid(path, "must be true or false")
		}
		return nil
	case "batchTimeout":
		if string(value) == `""` {
			return nil
		}
		_, err := readDuration(path, value, 0, maxBatchTimeout, &o.BatchTimeout)
		return err
	}
	if slices.Contains(webhookOptions, name) {
		if o.Webhook == nil {
			o.Webhook = &Webhook{}
		}
		return o.Webhook.set(name, value)
	}
	return pactwire.Invalid(path, "is not an option; there are firstEvent, readAhead, withData, batch, batchTimeout, and for webhooks %s", strings.Join(webhookOptions[:webhookOffered], ", "))
}

const maxBatchTimeout = time.Hour

// readDuration reads a duration such as 250ms, or a number of milliseconds, and keeps it as text.
func readDuration(path string, value json.RawMessage, least, most time.Duration, into *string) (time.Duration, error) {
	text := strings.Trim(string(value), `"`)
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		text = strconv.FormatInt(n, 10) + "ms"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, pactwire.Invalid(path, "must be a duration from %s to %s, such as 250ms or 30s", least, most)
	}
	*into = text
	return d, nil
}

// SetFirstEvent reads oldest, newest or a sequence number.
func (o *Options) SetFirstEvent(first string) error {
	switch first {
	case "", "newest", "oldest":
		o.FirstEvent = first
		return nil
	}
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil || n < -1 {
		return pactwire.Invalid("options.firstEvent", "must be oldest, newest, or the sequence number after which to start")
	}
	o.FirstEvent = strconv.FormatInt(n, 10)
	return nil
}

// SetReadAhead reads a number of events.
func (o *Options) SetReadAhead(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxReadAhead {
		return pactwire.Invalid("options.readAhead", "must be an integer from 0 to %d", maxReadAhead)
	}
	o.ReadAhead = &n
	return nil
}

// Resolve settles firstEvent against the highest sequence of the history. It returns the options as they are kept and answered, and the position
// to start from.
func (o Options) Resolve(head int64) (Options, int64) {
	position := head
	switch o.FirstEvent {
	case "", "newest":
	case "oldest":
		position = -1
	default:
		if n, err := strconv.ParseInt(o.FirstEvent, 10, 64); err == nil {
			position = n
		}
	}
	o.FirstEvent = strconv.FormatInt(position, 10)
	if o.ReadAhead == nil {
		o.ReadAhead = new(int)
		if o.Batch {
			*o.ReadAhead = defaultBatch
		}
	}
	return o, max(0, position)
}

// window is the number of events that may be in flight.
func (o Options) window() int {
	switch {
	case o.Webhook != nil && !o.Batch, o.ReadAhead == nil:
		return 1 // the next event is posted when the one before it was taken: that is what keeps the order
	}
	return max(1, *o.ReadAhead)
}
