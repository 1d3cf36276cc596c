package custom

import (
	"errors"
	"fmt"

	"skerry/internal/load"
)

// request is a line that the program reads. Values are Base64, as JSON has bytes.
type request struct {
	ID         int64             `json:"id"` // the answer has it too
	Op         string            `json:"op"` // open, read, scan, insert, update, delete, close
	Table      string            `json:"table,omitempty"`
	Key        string            `json:"key,omitempty"`
	Count      int               `json:"count,omitempty"`      // of a scan
	Fields     []string          `json:"fields,omitempty"`     // to read; all where there are none
	Values     map[string][]byte `json:"values,omitempty"`     // to write
	Properties map[string]string `json:"properties,omitempty"` // of open
	TimeoutMS  int64             `json:"timeout_ms,omitempty"` // after which nobody waits
}

// reply is the line that answers it.
type reply struct {
	ID int64 `json:"id"`
	// Status is ok, not_found, failed (it certainly was not done), unknown (it may have
	// been done) or unsupported.
	Status  string            `json:"status"`
	Class   string            `json:"class,omitempty"` // of an error, in a word
	Node    string            `json:"node,omitempty"`  // that it concerns
	Message string            `json:"message,omitempty"`
	Values  map[string][]byte `json:"values,omitempty"`  // of a read
	Records []scanRecord      `json:"records,omitempty"` // of a scan, in order
}

type scanRecord struct {
	Key    string            `json:"key"`
	Values map[string][]byte `json:"values"`
}

// errEnded says that a program has ended, errLine that it answered with something else
// than one line of the protocol.
var (
	errProgramEnded = errors.New("the program has ended")
	errProtocol     = errors.New("the program broke the protocol")
)

// err is what became of the operation.
func (a reply) err() error {
	because := errors.New(a.Message)
	class := a.Class
	if class == "" {
		class = "error"
	}
	switch a.Status {
	case "ok":
		return nil
	case "not_found":
		return load.ErrNotFound
	case "unsupported":
		return load.ErrUnsupported
	case "failed":
		return load.Failed(class, a.Node, because)
	case "unknown":
		return load.Unknown(class, a.Node, because)
	}
	return load.Unknown("protocol", a.Node, fmt.Errorf("%w: status %q", errProtocol, a.Status))
}
