package multiparty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// BroadcastInterface gives the interface its ids and pathnames and broadcasts it. This member may use it at once. A repeat with the same idempotency
// key (empty: none) returns the interface of the first time.
func (n *Network) BroadcastInterface(ctx context.Context, i contract.Interface, key string) (contract.Interface, error) {
	i.AssignPathnames()
	if err := i.Validate(); err != nil {
		return contract.Interface{}, err //nolint:wrapcheck // it speaks to the caller
	}
	repeat := newRepeat(key, store.TagDefineInterface, i)
	known, err := n.accept(ctx, repeat)
	if err != nil {
		return contract.Interface{}, err
	}
	if known != nil {
		return n.knownInterface(ctx, known.ID)
	}
	message := store.NewID()
	n.identify(&i, message)
	setNamespace(&i, n.cfg.NetworkName)
	b, err := n.message(message, store.TagDefineInterface, []string{i.Name}, i)
	if err != nil {
		return contract.Interface{}, err
	}
	if b.Interface, err = interfaceRecord(&i, &b.Message); err != nil {
		return contract.Interface{}, err
	}
	if known, err = n.create(ctx, b, repeat); err != nil {
		return contract.Interface{}, err
	}
	if known != nil {
		return n.knownInterface(ctx, known.ID)
	}
	return i, nil
}

func (n *Network) knownInterface(ctx context.Context, message uuid.UUID) (contract.Interface, error) {
	record, err := n.db.InterfaceByMessage(ctx, n.cfg.Namespace, message)
	if err != nil {
		return contract.Interface{}, err //nolint:wrapcheck // it speaks to the caller
	}
	return record.Contract() //nolint:wrapcheck // it says what it did
}

// identify gives new ids to the interface and everything in it.
func (n *Network) identify(i *contract.Interface, message uuid.UUID) {
	id := store.NewID()
	fresh := func() *uuid.UUID { id := store.NewID(); return &id }
	i.ID, i.Message = &id, &message
	for k := range i.Methods {
		i.Methods[k].ID, i.Methods[k].Contract = fresh(), &id
	}
	for k := range i.Events {
		i.Events[k].ID, i.Events[k].Contract = fresh(), &id
	}
	for k := range i.Errors {
		i.Errors[k].ID, i.Errors[k].Contract = fresh(), &id
	}
}

// BroadcastAPI broadcasts a new API. Of a, the name, the interface and the location count. This member may use it at once. A repeat with the same
// idempotency key (empty: none) returns the API of the first time.
func (n *Network) BroadcastAPI(ctx context.Context, a store.API, key string) (store.API, error) {
	if err := validAPIName(a.Name); err != nil {
		return store.API{}, err
	}
	repeat := newRepeat(key, store.TagDefineAPI, []any{a.Name, a.Interface, a.Location})
	known, err := n.accept(ctx, repeat)
	if err != nil {
		return store.API{}, err
	}
	if known != nil {
		return n.db.APIByMessage(ctx, n.cfg.Namespace, known.ID) //nolint:wrapcheck // it speaks to the caller
	}
	b, a, err := n.defineAPI(store.API{ID: store.NewID(), Name: a.Name, Interface: a.Interface, Location: a.Location})
	if err != nil {
		return store.API{}, err
	}
	b.API = &a
	if known, err = n.create(ctx, b, repeat); err != nil {
		return store.API{}, err
	}
	if known != nil {
		return n.db.APIByMessage(ctx, n.cfg.Namespace, known.ID) //nolint:wrapcheck // it speaks to the caller
	}
	return a, nil
}

// UpdateAPI broadcasts another interface for one of this member's APIs, at the same location. It takes effect when the network has confirmed it.
func (n *Network) UpdateAPI(ctx context.Context, id, newInterface uuid.UUID, key string) (store.API, error) {
	known, err := n.db.API(ctx, n.cfg.Namespace, id.String())
	if err != nil {
		return store.API{}, err //nolint:wrapcheck // it speaks to the caller
	}
	if known.Author != n.author {
		return store.API{}, pactwire.Conflict("api_foreign", "The API %q belongs to another member of the network.", known.Name)
	}
	repeat := newRepeat(key, "update_api", []any{id, newInterface})
	before, err := n.accept(ctx, repeat)
	if err != nil {
		return store.API{}, err
	}
	b, a, err := n.defineAPI(store.API{ID: known.ID, Name: known.Name, Interface: newInterface, Location: known.Location})
	if err != nil {
		return store.API{}, err
	}
	b.Update = &a
	if before == nil {
		before, err = n.create(ctx, b, repeat)
	}
	if before != nil {
		a.Message, a.Created = before.ID, before.Created
	}
	return a, err
}

// defineAPI makes the message about an API, and completes the API.
func (n *Network) defineAPI(a store.API) (*store.Broadcast, store.API, error) {
	definition := apiDefinition{ID: a.ID, Namespace: n.cfg.NetworkName, Name: a.Name, Interface: reference{a.Interface}}
	if len(a.Location) > 0 {
		definition.Location = &addressLocation{store.Account(a.Location)}
	}
	b, err := n.message(store.NewID(), store.TagDefineAPI, []string{a.Name}, definition)
	if err != nil {
		return nil, store.API{}, err
	}
	a.Namespace, a.Author, a.Message, a.State, a.Created = n.cfg.Namespace, n.author, b.Message.ID, store.StateReady, b.Message.Created
	return b, a, nil
}

// MessageInput is what an application broadcasts.
type MessageInput struct {
	Tag    string
	Topics []string          // "default" when there is none
	Data   []json.RawMessage // any JSON values

	IdempotencyKey string // empty: none
}

// BroadcastMessage broadcasts an application's message. A repeat with the same idempotency key returns the message of the first time.
func (n *Network) BroadcastMessage(ctx context.Context, in MessageInput) (store.Message, error) {
	if err := in.validate(); err != nil {
		return store.Message{}, err
	}
	topics := in.Topics
	if len(topics) == 0 {
		topics = []string{"default"}
	}
	values := make([]any, len(in.Data))
	for i, value := range in.Data {
		values[i] = value
	}
	repeat := newRepeat(in.IdempotencyKey, in.Tag, []any{"message", topics, in.Data})
	known, err := n.accept(ctx, repeat)
	if err != nil {
		return store.Message{}, err
	}
	if known != nil {
		return *known, nil
	}
	b, err := n.message(store.NewID(), in.Tag, topics, values...)
	if err != nil {
		return store.Message{}, err
	}
	if known, err = n.create(ctx, b, repeat); err != nil {
		return store.Message{}, err
	}
	if known != nil {
		return *known, nil
	}
	return b.Message, nil
}

func (in *MessageInput) validate() error {
	const name = "must be 1 to 64 letters, digits, dots, dashes or underscores, with a letter or digit at both ends"
	switch {
	case in.Tag == store.TagDefineInterface || in.Tag == store.TagDefineAPI:
		return pactwire.Invalid("header.tag", "%s is kept for definitions", in.Tag)
	case in.Tag != "" && !contract.ValidName(in.Tag):
		return pactwire.Invalid("header.tag", name)
	case len(in.Topics) > maxTopics:
		return pactwire.Invalid("header.topics", "at most %d topics", maxTopics)
	case len(in.Data) > maxValues:
		return pactwire.Invalid("data", "at most %d values", maxValues)
	}
	for i, topic := range in.Topics {
		if !contract.ValidName(topic) {
			return pactwire.Invalid(fmt.Sprintf("header.topics[%d]", i), name)
		}
	}
	return nil
}

// message makes a message of this member, with its values and hashes.
func (n *Network) message(id uuid.UUID, tag string, topics []string, values ...any) (*store.Broadcast, error) {
	m := store.Message{
		Namespace: n.cfg.Namespace, ID: id, Network: n.cfg.NetworkName, Type: store.MessageBroadcast, TxType: store.TxBatchPin, Author: n.author,
		Key: n.author, Created: store.Now(), Topics: topics, Tag: tag, State: store.StateReady, Data: store.DataRefs{}, Local: true,
	}
	b := &store.Broadcast{Data: make([]store.Data, len(values))}
	hashes := make([][]byte, len(values))
	size := 0
	for i, v := range values {
		hash, canonical, err := hashValue(v)
		if err != nil {
			return nil, pactwire.Invalid(fmt.Sprintf("data[%d].value", i), "%s", err)
		}
		if size += len(canonical); size > maxMessage {
			return nil, pactwire.Errorf(pactwire.KindTooLarge, "message_too_large", "The message's values have more than %d bytes.", maxMessage)
		}
		hashes[i] = hash
		b.Data[i] = store.Data{
			Namespace: m.Namespace, Message: id, Position: i, ID: store.NewID(), Hash: hash, Value: string(canonical), Created: m.Created,
		}
		m.Data = append(m.Data, store.DataRef{ID: b.Data[i].ID, Hash: fmt.Sprintf("%x", hash)})
	}
	var err error
	if m.DataHash, err = MessageDataHash(hashes); err != nil {
		return nil, err
	}
	if m.Hash, err = MessageHash(m.Header()); err != nil {
		return nil, err
	}
	b.Message = m
	return b, nil
}

// hashValue is hashJSON for a value that may be JSON text already; json.Marshal would repair what Canonical refuses.
func hashValue(v any) (hash, canonical []byte, err error) {
	text, ok := v.(json.RawMessage)
	if !ok {
		return hashJSON(v)
	}
	if canonical, err = Canonical(text); err != nil {
		return nil, nil, err
	}
	return sum(canonical), canonical, nil
}

// errPending means that the network has not decided yet.
var errPending = errors.New("not decided yet")

// WaitConfirmed returns when the network has confirmed the message. A rejected one is a conflict that tells the reason.
func (n *Network) WaitConfirmed(ctx context.Context, id uuid.UUID) error {
	wakeup := n.db.Subscribe(store.TopicHistory(n.cfg.Namespace))
	defer wakeup.Close()
	for {
		if err := n.decided(ctx, id); !errors.Is(err, errPending) {
			return err
		}
		timer := time.NewTimer(pollInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for message %s: %w", id, ctx.Err())
		case <-wakeup.C:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (n *Network) decided(ctx context.Context, id uuid.UUID) error {
	m, err := n.db.Message(ctx, n.cfg.Namespace, id)
	switch {
	case err != nil:
		return err //nolint:wrapcheck // it speaks to the caller
	case m.State == store.StateConfirmed:
		return nil
	case m.State == store.StateRejected:
		return pactwire.Conflict("message_rejected", "The message was rejected: %s.", m.Reason)
	}
	return errPending
}
