// Package bodylimit reads requests as they come, with a bound on what those of all clients hold
// together: a request that announces much and sends little takes little, one that stalls is given
// up, and many large ones at once are refused before memory is.
//
//	request ─► Body: grows with what has come ──over the room──► ErrFull: 503
//	               │                          ──too slow──────► ErrSlow: 408
//	               └─► whole: the server's slots, queues and locks come now
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

// Reasons for which a request is given up.
var (
	ErrFull = errors.New("requests of too many bytes are on their way")
	ErrSlow = errors.New("the request did not arrive in time")
	ErrCut  = errors.New("the request is cut short")
)

const (
	// Free is what of each request is not counted, in bytes: most are smaller, so that large
	// ones that fill the room keep none of those from being answered.
	freeBytes = 16 << 10
	// first is how much is taken for a request before anything of it has come.
	initialBuffer = 4 << 10
	// DefaultRoom is what requests hold together, in bytes, where nothing else is said.
	DefaultBudget = 256 << 20
)

// Budget is what requests may hold together.
type Budget struct {
	limit int64
	held  atomic.Int64
}

// NewBudget is room for so many bytes, DefaultRoom where it is 0.
func NewBudget(bytes int64) *Budget {
	if bytes == 0 {
		bytes = DefaultBudget
	}
	return &Budget{limit: bytes}
}

// reserve tells whether there was room for n bytes more, and takes it.
func (r *Budget) reserve(n int64) bool {
	if r.held.Add(n) <= r.limit {
		return true
	}
	r.held.Add(-n)
	return false
}

// Release gives back what a request held.
func (r *Budget) Release(n int64) {
	if n > 0 {
		r.held.Add(-n)
	}
}

// InUse is what requests hold now, in bytes.
func (r *Budget) InUse() int64 { return r.held.Load() }

// Read reads length bytes, or all where it is negative. Memory grows with what has come. held is
// to be given back when the bytes are no longer needed; it is 0 with an error.
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
			return b, held, fmt.Errorf("%w: %d bytes came: %w", ErrCut, len(b), io.ErrUnexpectedEOF)
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

// ReadBody reads a request's body of at most so many bytes, which must have come within patience.
// Errors are ErrFull, ErrSlow, ErrCut and *http.MaxBytesError; behind them the connection is of no
// further use.
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
		// What is still to come is read past: a connection that is closed before it takes the
		// answer with it. Where it is too late, the answer tells the same.
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

// setReadDeadline is a read deadline, where the connection has any.
func setReadDeadline(c *http.ResponseController, at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("waiting for a request: %w", err)
	}
	return nil
}
