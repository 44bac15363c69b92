package pactwire

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the class of an error: it decides the HTTP status, in one place (handlers/errors.go).
type Kind string

// The classes of errors that every package speaks.
const (
	KindInvalid      Kind = "invalid"      // 400: the request is malformed or breaks a rule
	KindUnauthorized Kind = "unauthorized" // 401: no or wrong credentials
	KindForbidden    Kind = "forbidden"    // 403: known, but not allowed
	KindNotFound     Kind = "not_found"    // 404: a resource that is named does not exist
	KindTimeout      Kind = "timeout"      // 408: the request's own time limit passed
	KindConflict     Kind = "conflict"     // 409: a name is taken, an idempotency key is used with another body, something is in use
	KindTooLarge     Kind = "too_large"    // 413: the body is larger than allowed
	KindReverted     Kind = "reverted"     // 422: the EVM reverted
	KindRateLimited  Kind = "rate_limited" // 429
	KindBadUpstream  Kind = "bad_upstream" // 502: the chain node answered nonsense
	KindUnavailable  Kind = "unavailable"  // 503: chain or database out of reach; safe to try again
	KindInternal     Kind = "internal"     // 500: a defect of ours; details go to the log only
)

// Field names one wrong part of a request.
type Field struct {
	Path    string `json:"path"`    // where it is, such as input.x or options.gas
	Message string `json:"message"` // what is wrong and what would be right
}

// Revert is what the EVM said when it reverted (Solidity ABI specification, "Errors").
type Revert struct {
	Name      string `json:"name,omitempty"`      // Error, Panic, or the custom error's name; empty when unknown
	Signature string `json:"signature,omitempty"` // such as InsufficientBalance(uint256,uint256)
	Args      any    `json:"args,omitempty"`      // arguments by name, or by position ("0", "1") where unnamed
	Reason    string `json:"reason,omitempty"`    // one readable sentence
	Data      string `json:"data,omitempty"`      // the raw revert data, 0x hex
}

// Error is an error whose message is meant for the caller. Any other error is an internal one: it is logged, and the
// caller hears only that something went wrong inside.
type Error struct {
	Kind       Kind
	Code       string        // stable machine word, such as interface_not_found
	Message    string        // one sentence for a person; holds no internals
	Fields     []Field       // which parts of the request are wrong, when it is the request
	Revert     *Revert       // with KindReverted
	RetryAfter time.Duration // with KindUnavailable and KindRateLimited: when a new try makes sense
	Err        error         // the cause, for the log; never shown
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of a kind, with its code and its message.
func Errorf(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid makes a KindInvalid error about one field of the request.
func Invalid(path, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	full := message
	if path != "" {
		full = path + ": " + message
	}
	return &Error{Kind: KindInvalid, Code: "invalid_request", Message: full, Fields: []Field{{Path: path, Message: message}}}
}

// NotFound makes a KindNotFound error: NotFound("interface", "…") has the code interface_not_found.
func NotFound(resource, format string, args ...any) *Error {
	return &Error{
		Kind: KindNotFound, Code: strings.ReplaceAll(resource, " ", "_") + "_not_found", Message: fmt.Sprintf(format, args...),
	}
}

// Conflict makes a KindConflict error.
func Conflict(code, format string, args ...any) *Error {
	return &Error{Kind: KindConflict, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Unavailable wraps a failure to reach the chain or the database: the caller is told to try again soon.
func Unavailable(code string, err error, format string, args ...any) *Error {
	return &Error{
		Kind: KindUnavailable, Code: code, Message: fmt.Sprintf(format, args...), RetryAfter: time.Second, Err: err,
	}
}

// KindOf tells the class of an error; anything that is no *Error is internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindInternal
}
