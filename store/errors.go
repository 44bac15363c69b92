package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// ErrFenced means that another owner has taken over the lease under which a write was tried. The writer must stop.
var ErrFenced = errors.New("the lease has a newer owner")

// wrap says what was being done when err happened. A database out of reach becomes a pactwire.KindUnavailable, so that a
// client is told to try again; everything else stays internal.
func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, err)
	var known *pactwire.Error
	var server *pq.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &server) && (server.Code == "22021" || server.Code == "22P05"):
		// PostgreSQL's text holds no NUL and nothing but UTF-8. What comes from a chain has been cleaned of both, so it was the caller's.
		e := pactwire.Invalid("", "text must be UTF-8 and must not hold a NUL character")
		e.Err = err
		return e
	case !unreachable(err):
		return err
	}
	return pactwire.Unavailable("database_unavailable", err, "The database cannot be reached at the moment.")
}

// unreachable tells whether err comes from the way to the database rather than from the statement.
func unreachable(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var server *pq.Error
	if errors.As(err, &server) {
		switch server.Code.Class() {
		case "08", "53", "57": // connection exception, insufficient resources, operator intervention (shutdown, crash)
			return server.Code != "57014" // a cancelled statement is the caller's own doing
		}
		return false
	}
	var network net.Error
	var path *os.SyscallError
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) ||
		errors.As(err, &network) || errors.As(err, &path)
}

// Refused tells whether the server has refused a statement for what is in it. Nothing of it was done.
func Refused(err error) bool {
	var server *pq.Error
	return errors.As(err, &server) && !unreachable(err)
}

// violates tells whether err is the breach of the unique constraint or index with that name.
func violates(err error, constraint string) bool {
	var server *pq.Error
	return errors.As(err, &server) && server.Code == "23505" && server.Constraint == constraint
}

// isDataError tells whether a value could not be read as the type that the statement gave it (SQLSTATE class 22).
func isDataError(err error) bool {
	var server *pq.Error
	return errors.As(err, &server) && server.Code.Class() == "22"
}
