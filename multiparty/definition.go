package multiparty

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// maxEntries bounds the methods, events and errors of an interface before they are decoded; package contract has its own, narrower rule.
const maxEntries = 20_000

// apiDefinition is an API as it is broadcast.
type apiDefinition struct {
	ID        uuid.UUID        `json:"id"`
	Namespace string           `json:"namespace"` // the network-wide name
	Name      string           `json:"name"`
	Interface reference        `json:"interface"`
	Location  *addressLocation `json:"location,omitempty"`
}

type reference struct {
	ID uuid.UUID `json:"id"`
}

type addressLocation struct {
	Address string `json:"address"`
}

// readDefinition reads what a message defines, by its tag. A definition that is wrong is noted in Invalid: the message is then rejected by every member alike.
func readDefinition(m *store.PinnedMessage) {
	var err error
	switch m.Message.Tag {
	case store.TagDefineInterface:
		m.Interface, err = readInterface(m)
	case store.TagDefineAPI:
		m.API, err = readAPI(m)
	}
	if err != nil {
		m.Invalid = printable("the definition is not valid: "+err.Error(), 1000)
	}
}

func oneValue(m *store.PinnedMessage) (string, error) {
	if len(m.Data) != 1 {
		return "", errors.New("a definition has exactly one value")
	}
	return m.Data[0].Value, nil
}

func readInterface(m *store.PinnedMessage) (*store.Interface, error) {
	text, err := oneValue(m)
	if err != nil {
		return nil, err
	}
	var lists struct {
		Methods, Events, Errors []json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &lists); err != nil {
		return nil, fmt.Errorf("read the interface: %w", err)
	}
	if max(len(lists.Methods), len(lists.Events), len(lists.Errors)) > maxEntries {
		return nil, fmt.Errorf("more than %d methods, events or errors", maxEntries)
	}
	var i contract.Interface
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return nil, fmt.Errorf("read the interface: %w", err)
	}
	switch {
	case i.ID == nil || *i.ID == uuid.Nil:
		return nil, errors.New("the interface has no id")
	case i.Message == nil || *i.Message != m.Message.ID:
		return nil, errors.New("the interface names another message")
	case i.Namespace != m.Message.Network:
		return nil, errors.New("the interface is for another network")
	}
	if err := i.Validate(); err != nil {
		return nil, err //nolint:wrapcheck // it speaks of the interface already
	}
	if err := verifyEntries(&i); err != nil {
		return nil, err
	}
	return interfaceRecord(&i, &m.Message)
}

// verifyEntries checks what was assigned at the broadcast: ids, owners and pathnames.
func verifyEntries(i *contract.Interface) error {
	assigned := contract.Interface{
		Methods: append([]contract.Method(nil), i.Methods...),
		Events:  append([]contract.Event(nil), i.Events...),
		Errors:  append([]contract.Error(nil), i.Errors...),
	}
	assigned.AssignPathnames()
	seen := map[uuid.UUID]bool{*i.ID: true}
	check := func(id, owner *uuid.UUID, namespace, pathname, want string) error {
		switch {
		case id == nil || *id == uuid.Nil || seen[*id]:
			return errors.New("an entry has no id of its own")
		case owner == nil || *owner != *i.ID || namespace != i.Namespace:
			return errors.New("an entry belongs to another interface")
		case pathname != want:
			return fmt.Errorf("the pathname %.80q must be %.80q", pathname, want)
		}
		seen[*id] = true
		return nil
	}
	for n, m := range i.Methods {
		if err := check(m.ID, m.Contract, m.Namespace, m.Pathname, assigned.Methods[n].Pathname); err != nil {
			return err
		}
	}
	for n, e := range i.Events {
		if err := check(e.ID, e.Contract, e.Namespace, e.Pathname, assigned.Events[n].Pathname); err != nil {
			return err
		}
	}
	for n, e := range i.Errors {
		if err := check(e.ID, e.Contract, e.Namespace, e.Pathname, assigned.Errors[n].Pathname); err != nil {
			return err
		}
	}
	return nil
}

// interfaceRecord is the interface as it is kept by a member, under the name that the namespace has there.
func interfaceRecord(i *contract.Interface, m *store.Message) (*store.Interface, error) {
	setNamespace(i, m.Namespace)
	text, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encode the interface: %w", err)
	}
	return &store.Interface{
		Namespace: m.Namespace, ID: *i.ID, Name: i.Name, Version: i.Version, Description: printable(i.Description, len(i.Description)), Author: m.Author,
		Message: m.ID, State: store.StateReady, Definition: string(text), Created: m.Created,
	}, nil
}

func setNamespace(i *contract.Interface, namespace string) {
	i.Namespace = namespace
	for n := range i.Methods {
		i.Methods[n].Namespace = namespace
	}
	for n := range i.Events {
		i.Events[n].Namespace = namespace
	}
	for n := range i.Errors {
		i.Errors[n].Namespace = namespace
	}
}

func readAPI(m *store.PinnedMessage) (*store.API, error) {
	text, err := oneValue(m)
	if err != nil {
		return nil, err
	}
	var d apiDefinition
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, fmt.Errorf("read the API: %w", err)
	}
	switch {
	case d.ID == uuid.Nil || d.Interface.ID == uuid.Nil:
		return nil, errors.New("the API or its interface has no id")
	case d.Namespace != m.Message.Network:
		return nil, errors.New("the API is for another network")
	}
	if err := validAPIName(d.Name); err != nil {
		return nil, err
	}
	a := &store.API{
		Namespace: m.Message.Namespace, ID: d.ID, Name: d.Name, Interface: d.Interface.ID, Author: m.Message.Author, Message: m.Message.ID,
		State: store.StateReady, Created: m.Message.Created,
	}
	if d.Location != nil {
		address, err := contract.ParseAddress(d.Location.Address)
		if err != nil {
			return nil, fmt.Errorf("location.address: %w", err)
		}
		a.Location = address.Bytes()
	}
	return a, nil
}

func validAPIName(name string) error {
	if !contract.ValidName(name) {
		return pactwire.Invalid("name", "must be 1 to 64 letters, digits, dots, dashes or underscores, with a letter or digit at both ends")
	}
	if _, err := uuid.Parse(name); err == nil {
		return pactwire.Invalid("name", "must not look like an id")
	}
	return nil
}

// printable makes text from a foreign hand fit for the database and for a log: valid UTF-8, no NUL, not longer than limit.
func printable(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
