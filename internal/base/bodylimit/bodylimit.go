// Package bodylimit reads request bodies within a memory budget that all requests share. Memory grows with the bytes
// that arrived, not with the announced length. A stalled request is aborted. Large concurrent requests are rejected
// before memory runs out.
//
//	request ─► ReadBody: grows with the arrived bytes ──over budget──► ErrFull: 503
//	               │                                  ──too slow────► ErrSlow: 408
//	               └─► complete: only now the request uses slots, queues and locks of the server
package bodylimit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Errors of aborted requests.
var (
	ErrFull = errors.New("memory budget of request bodies exhausted")
	ErrSlow = errors.New("request body did not arrive in time")
	ErrCut  = errors.New("request body is truncated")
)

const (
	// freeBytes of each request are not counted against the budget. Most requests are smaller, so that large requests
	// that exhaust the budget do not block them.
	freeBytes = 16 << 10
	// initialBuffer is the buffer of a request before any byte arrived.
	initialBuffer = 4 << 10
	// DefaultBudget is the default budget of all requests in bytes.
	DefaultBudget = 256 << 20
)

// Budget is the memory that request bodies may use together. Its methods may be called concurrently.
type Budget struct {
	limit int64
	held  atomic.Int64
}

// NewBudget returns a budget of bytes; 0 means DefaultBudget.
func NewBudget(bytes int64) *Budget {
	if bytes == 0 {
		bytes = DefaultBudget
	}
	return &Budget{limit: bytes}
}

// reserve reserves n bytes, or returns false.
func (r *Budget) reserve(n int64) bool {
	if r.held.Add(n) <= r.limit {
		return true
	}
	r.held.Add(-n)
	return false
}

// Release returns the reserved bytes of a request to the budget.
func (r *Budget) Release(n int64) {
	if n > 0 {
		r.held.Add(-n)
	}
}

// InUse returns the reserved bytes.
func (r *Budget) InUse() int64 { return r.held.Load() }

// Read reads length bytes, or until EOF if length is negative. The caller must Release held when it no longer needs b.
// held is 0 if err is not nil.
func (r *Budget) Read(from io.Reader, length int64) (b []byte, held int64, err error) {
	defer func() {
		if err != nil {
			r.Release(held)
			b, held = nil, 0
		}
	}()
	size := int64(initialBuffer)
	if length >= 0 {
		size = min(size, length)
	}
	for b = make([]byte, 0, size); ; {
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case length >= 0 && int64(len(b)) == length:
			return b, held, nil
		case err == io.EOF && length < 0:
			return b, held, nil
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return b, held, fmt.Errorf("%w: %d bytes arrived: %w", ErrCut, len(b), io.ErrUnexpectedEOF)
		case err != nil:
			return b, held, err
		case len(b) < cap(b):
			continue
		}
		size = 2 * int64(cap(b))
		if length >= 0 {
			size = min(size, length)
		}
		if more := size - max(freeBytes, int64(cap(b))); more > 0 {
			if !r.reserve(more) {
				return b, held, fmt.Errorf("%w: more than %d", ErrFull, r.limit)
			}
			held += more
		}
		b = append(make([]byte, 0, size), b...)
	}
}

// ReadBody reads a request body of at most most bytes that must arrive within patience. Errors are ErrFull, ErrSlow,
// ErrCut and *http.MaxBytesError. After an error the connection cannot be reused.
func (r *Budget) ReadBody(w http.ResponseWriter, q *http.Request, most int64, patience time.Duration) (b []byte, held int64, err error) {
	if q.ContentLength == 0 {
		return nil, 0, nil
	}
	deadline := http.NewResponseController(w)
	if err := setReadDeadline(deadline, time.Now().Add(patience)); err != nil {
		return nil, 0, err
	}
	if q.ContentLength > most {
		return nil, 0, &http.MaxBytesError{Limit: most}
	}
	body := http.MaxBytesReader(w, q.Body, most)
	b, held, err = r.Read(body, q.ContentLength)
	if errors.Is(err, ErrFull) {
		// Drain the rest of the body: closing the connection earlier would discard the response.
		_, _ = io.Copy(io.Discard, body)
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		err = fmt.Errorf("%w: %w", ErrSlow, err)
	}
	if err == nil {
		if err = setReadDeadline(deadline, time.Time{}); err != nil {
			r.Release(held)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return b, held, nil
}

// setReadDeadline sets the read deadline of a connection that supports deadlines.
func setReadDeadline(c *http.ResponseController, at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("setting the read deadline: %w", err)
	}
	return nil
}
