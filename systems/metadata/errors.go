package metadata

import (
	"errors"
	"fmt"
	"net/http"

	"skerry/internal/base/errs"
)

// What can be wrong with a command. Their texts are what clients read.
var (
	ErrNotFound     = errors.New("no such file or directory")
	ErrExists       = errors.New("exists")
	ErrNotEmpty     = errors.New("directory is not empty")
	ErrNotDirectory = errors.New("not a directory")
	ErrIsDirectory  = errors.New("is a directory")
	ErrInvalid      = errors.New("invalid")
	ErrTooLong      = errors.New("too long")
	ErrUnavailable  = errors.New("not now")
	ErrElsewhere    = errors.New("is on another server")
	ErrLocked       = errors.New("is held by a transaction")
	ErrAborted      = errors.New("the transaction was given up")
	ErrForbidden    = errors.New("not allowed")
	ErrStale        = errors.New("whether it was done before is no longer known")
)

// classes are the errors with their codes of the JSON form and statuses of HTTP. The first that an error
// is counts: who waited for a transaction for too long is told that nothing can be done now, as a client
// understands it, and not what servers tell each other.
var classes = []struct {
	err    error
	code   string
	status int
}{
	{ErrNotFound, "not_found", http.StatusNotFound},
	{ErrExists, "exists", http.StatusConflict},
	{ErrNotEmpty, "not_empty", http.StatusConflict},
	{ErrNotDirectory, "not_directory", http.StatusBadRequest},
	{ErrIsDirectory, "is_directory", http.StatusBadRequest},
	{ErrTooLong, "too_long", http.StatusRequestURITooLong},
	{ErrInvalid, "invalid", http.StatusBadRequest},
	{ErrElsewhere, "elsewhere", http.StatusMisdirectedRequest},
	{ErrForbidden, "forbidden", http.StatusForbidden},
	{ErrStale, "stale", http.StatusServiceUnavailable},
	{ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
	{ErrLocked, "locked", http.StatusServiceUnavailable},
	{ErrAborted, "aborted", http.StatusServiceUnavailable},
}

// Error is an error with the path that it is about: "/a/b: no such file or directory".
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return Quote(e.Path) + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ElsewhereError is the error of a command that meets a virtual directory: At is its path,
// Owner the server that it is on. It is ErrElsewhere.
type ElsewhereError struct {
	At, Owner string
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("%s: is on another server: %s", Quote(e.At), e.Owner)
}

// Unwrap is ErrElsewhere.
func (e *ElsewhereError) Unwrap() error { return ErrElsewhere }

// HeldError is the error of a command that meets what a transaction between servers holds. It is
// ErrLocked.
type HeldError struct {
	Path        string // that is held
	Txn         string
	Coordinator string // the server that knows how it ends; "" for the one that says so
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s: is held by the transaction %s of %s", Quote(e.Path), e.Txn, either(e.Coordinator, "this server"))
}

// Unwrap is ErrLocked.
func (e *HeldError) Unwrap() error { return ErrLocked }

// HTTPStatus is the HTTP status of an error: 200 for none, 503 for those that are not a
// client's.
func HTTPStatus(err error) int {
	if err == nil {
		return http.StatusOK
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.status
		}
	}
	return http.StatusServiceUnavailable
}

// ErrorCode is the error's code in the JSON form, "" for none.
func ErrorCode(err error) string {
	if err == nil {
		return ""
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return "unavailable"
}

// DecodeError is the error that a server sent by its code and text.
func DecodeError(code, text string) error {
	for _, c := range classes {
		if c.code == code {
			return errs.As(text, c.err)
		}
	}
	return errs.As(text, ErrUnavailable)
}
