// Package advice attaches to an error what its reader can do about it.
//
// The advice is not part of the error's text. It survives every wrapping, and a command prints it on a line of its own.
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

// With returns err with advice attached. It returns nil if err is nil.
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

// WithText returns an error that reads text and unwraps to err, which may be nil.
// Protocols use it to restore the sentinel of an error that another process sent as text.
func WithText(text string, err error) error { return &reworded{text: text, err: err} }

type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }
