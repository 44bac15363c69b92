package contract

import "github.com/google/uuid"

// Interface is the neutral description of a contract (specification, "Contract interface").
type Interface struct {
	ID          *uuid.UUID `json:"id,omitempty"`      // assigned on broadcast
	Message     *uuid.UUID `json:"message,omitempty"` // the broadcast message; assigned on broadcast
	Namespace   string     `json:"namespace,omitempty"`
	Name        string     `json:"name"` // empty in a generated interface
	Description string     `json:"description"`
	Version     string     `json:"version"` // free text; empty in a generated interface
	Methods     []Method   `json:"methods"`
	Events      []Event    `json:"events"`
	Errors      []Error    `json:"errors"`
}

// Method is one function of a contract.
type Method struct {
	ID          *uuid.UUID     `json:"id,omitempty"`
	Contract    *uuid.UUID     `json:"contract,omitempty"` // the owning interface
	Namespace   string         `json:"namespace,omitempty"`
	Name        string         `json:"name"`
	Pathname    string         `json:"pathname"` // {method} in invoke and query paths; empty until broadcast
	Description string         `json:"description"`
	Params      []Param        `json:"params"`
	Returns     []Param        `json:"returns"`
	Details     *MethodDetails `json:"details,omitempty"`
}

// MethodDetails is what the ABI says of a function beyond its parameters.
type MethodDetails struct {
	StateMutability string `json:"stateMutability,omitempty"` // pure, view, nonpayable or payable
}

// Event is one event definition of a contract.
type Event struct {
	ID          *uuid.UUID    `json:"id,omitempty"`
	Contract    *uuid.UUID    `json:"contract,omitempty"`
	Namespace   string        `json:"namespace,omitempty"`
	Pathname    string        `json:"pathname"` // eventPath of listeners; empty until broadcast
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Params      []Param       `json:"params"`
	Details     *EventDetails `json:"details,omitempty"`
}

// EventDetails is what the ABI says of an event beyond its parameters.
type EventDetails struct {
	Anonymous bool `json:"anonymous,omitempty"` // its logs carry no signature topic
}

// Error is one custom error of a contract (Solidity 0.8.4 and later).
type Error struct {
	ID          *uuid.UUID `json:"id,omitempty"`
	Contract    *uuid.UUID `json:"contract,omitempty"`
	Namespace   string     `json:"namespace,omitempty"`
	Pathname    string     `json:"pathname"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Params      []Param    `json:"params"`
}

// Param is an input, an output, an event argument or an error argument.
type Param struct {
	Name   string  `json:"name"` // may be empty for an unnamed one
	Schema *Schema `json:"schema"`
}

// Schema describes a value twice: as JSON (Type, Items, Properties) and natively (Details).
type Schema struct {
	Type        string             `json:"type,omitempty"` // integer, boolean, string, array or object
	Description string             `json:"description,omitempty"`
	Details     *Details           `json:"details,omitempty"`
	Items       *Schema            `json:"items,omitempty"`      // of an array
	Properties  map[string]*Schema `json:"properties,omitempty"` // of a tuple; their order is each one's Details.Index
}

// Details is the native side of a Schema.
type Details struct {
	Type         string `json:"type,omitempty"`         // canonical native type, such as uint256 or tuple[]
	InternalType string `json:"internalType,omitempty"` // as the compiler gave it, such as enum Game.State
	Indexed      bool   `json:"indexed,omitempty"`      // event arguments only
	Index        *int   `json:"index,omitempty"`        // position within its tuple
}
