package userspace

import (
	"errors"
	"fmt"

	"skerry/internal/base/advice"
	"skerry/internal/base/errs"
	"skerry/internal/link"
	"skerry/internal/link/userspace/device"
)

// Operations of the protocol.
const (
	opHello    = "hello"
	opCreate   = "create"
	opSet      = "set"
	opStats    = "stats"
	opLateness = "lateness"
	opRemove   = "remove"
	opShutdown = "shutdown"
)

// maxLine bounds a request or response in bytes: the statistics of about 10,000 links.
const maxLine = 16 << 20

// config is the first line on standard input.
type config struct {
	Socket        string      `json:"socket"`
	ExitWithOwner bool        `json:"exit_with_owner,omitempty"`
	Kind          device.Kind `json:"kind,omitempty"`
	Threads       int         `json:"threads,omitempty"`
}

// ready is the one line on standard output, written when the socket is open or the start failed.
type ready struct {
	Error *wireError `json:"error,omitempty"`
}

// request is one line; the response has the same ID.
type request struct {
	ID      uint64        `json:"id"`
	Op      string        `json:"op"`
	Specs   []link.Spec   `json:"specs,omitempty"`
	Changes []link.Change `json:"changes,omitempty"`
	IDs     []string      `json:"ids,omitempty"`
	Reset   bool          `json:"reset,omitempty"`
}

type response struct {
	ID       uint64         `json:"id"`
	Error    *wireError     `json:"error,omitempty"`
	Hello    *hello         `json:"hello,omitempty"`
	Stats    []link.Stats   `json:"stats,omitempty"`
	Lateness *link.Lateness `json:"lateness,omitempty"`
}

// hello describes a running emulator.
type hello struct {
	PID      int         `json:"pid"`
	Kind     device.Kind `json:"kind"`
	RealTime bool        `json:"real_time"`
	Reason   string      `json:"reason,omitempty"` // if RealTime is false
}

type wireError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// codes identify the errors that keep their identity across the connection.
var codes = map[string]error{
	"invalid":     link.ErrInvalid,
	"exists":      link.ErrExists,
	"unknown":     link.ErrUnknown,
	"unavailable": ErrUnavailable,
}

func encodeError(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Message: err.Error(), Advice: advice.Of(err)}
	for code, known := range codes {
		if errors.Is(err, known) {
			w.Code = code
		}
	}
	return w
}

func decodeError(w *wireError) error {
	if w == nil {
		return nil
	}
	err := errs.As(w.Message, codes[w.Code])
	if w.Advice != "" {
		err = advice.With(err, "%s", w.Advice)
	}
	return err
}

var errTooLong = fmt.Errorf("message of more than %d bytes", maxLine)
