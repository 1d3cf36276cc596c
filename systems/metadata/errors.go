package metadata

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"skerry/internal/base/advice"
)

// Classes of errors of a command. Clients read their texts.
var (
	ErrNotFound     = errors.New("no such file or directory")
	ErrExists       = errors.New("exists")
	ErrNotEmpty     = errors.New("directory is not empty")
	ErrNotDirectory = errors.New("not a directory")
	ErrIsDirectory  = errors.New("is a directory")
	ErrInvalid      = errors.New("invalid")
	ErrTooLong      = errors.New("too long")
	ErrUnavailable  = errors.New("unavailable")
	ErrElsewhere    = errors.New("is on another server")
	ErrLocked       = errors.New("is locked by a transaction")
	ErrAborted      = errors.New("transaction was aborted")
	ErrForbidden    = errors.New("not allowed")
	ErrStale        = errors.New("too old to tell whether the change was made before")
)

// classes maps errors to codes of the JSON form and to HTTP statuses. The first match counts: a command that timed out
// waiting for a transaction is ErrUnavailable for clients, and not ErrLocked, which only servers use.
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

// Error adds the path to an error: "/a/b: no such file or directory".
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return Quote(e.Path) + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ElsewhereError wraps ErrElsewhere for a command that reaches the virtual directory At of server Owner.
type ElsewhereError struct {
	At, Owner string
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("%s: is on another server: %s", Quote(e.At), e.Owner)
}

func (e *ElsewhereError) Unwrap() error { return ErrElsewhere }

// HeldError is returned by a command that needs a path locked by a transaction between servers. It wraps ErrLocked.
type HeldError struct {
	Path        string // locked path
	Txn         string
	Coordinator string // the server that decides; "" for the server that returned the error
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s: is locked by transaction %s of %s", Quote(e.Path), e.Txn, cmp.Or(e.Coordinator, "this server"))
}

func (e *HeldError) Unwrap() error { return ErrLocked }

// HTTPStatus returns the HTTP status of an error: 200 for nil, 503 for unknown errors.
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

// ErrorCode returns an error's code in the JSON form, "" for nil.
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

// DecodeError returns the error that a server encoded as a code and a text.
func DecodeError(code, text string) error {
	for _, c := range classes {
		if c.code == code {
			return advice.WithText(text, c.err)
		}
	}
	return advice.WithText(text, ErrUnavailable)
}
