// Package advice attaches to an error what its reader can do about it.
//
// An error says what was being done to what and why it failed; its advice
// is the next step, kept apart so that it stays intact however often the error is
// wrapped and so that a command can print it on a line of its own.
package advice

import (
	"errors"
	"fmt"
)

type advised struct {
	err  error
	next string
}

func (a *advised) Error() string { return a.err.Error() }
func (a *advised) Unwrap() error { return a.err }

// With returns err with advice attached; nil stays nil.
func With(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &advised{err: err, next: fmt.Sprintf(format, args...)}
}

// Of returns the outermost advice in err's chain, or "".
func Of(err error) string {
	var a *advised
	if errors.As(err, &a) {
		return a.next
	}
	return ""
}
