package load

import (
	"context"
	"errors"
	"strings"
)

// Classes of errors that the driver itself tells apart. Clients add their own.
const (
	classNotFound    = "not_found"
	classUnsupported = "unsupported"
	classTimeout     = "timeout"
	classCanceled    = "canceled"
	classStuck       = "stuck"
	classOther       = "error"
)

// Failed is an operation that certainly did not happen.
func Failed(class, node string, err error) error { return &OpError{NotDone, class, node, err} }

// Unknown is an operation that may have happened.
func Unknown(class, node string, err error) error { return &OpError{InDoubt, class, node, err} }

// classify turns a client's error into an outcome; nil stays nil.
func classify(err error) *OpError {
	if err == nil {
		return nil
	}
	var e *OpError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ErrNotFound):
		return &OpError{NotDone, classNotFound, "", err}
	case errors.Is(err, ErrUnsupported):
		return &OpError{NotDone, classUnsupported, "", err}
	case errors.Is(err, context.DeadlineExceeded):
		return &OpError{InDoubt, classTimeout, "", err}
	case errors.Is(err, context.Canceled):
		return &OpError{InDoubt, classCanceled, "", err}
	}
	return &OpError{InDoubt, classOther, "", err}
}

const returnOK = "OK"

// returnCode is YCSB's status name for a class.
func returnCode(class string) string {
	switch class {
	case classUnsupported:
		return "NOT_IMPLEMENTED"
	case "":
		return "ERROR"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, class)
}
