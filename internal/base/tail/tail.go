// Package tail keeps the end of a program's output, for error messages.
package tail

import (
	"strings"
	"sync"
)

// Tail is an io.Writer that keeps the last bytes written. Its methods may be called concurrently.
type Tail struct {
	most int
	mu   sync.Mutex
	text []byte
}

// New returns a Tail of at most most bytes.
func New(most int) *Tail { return &Tail{most: most} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*t.most { // do not copy on every write
		t.text = append(t.text[:0], t.last()...)
	}
	return len(p), nil
}

// String returns the kept bytes without surrounding white space.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last()))
}

func (t *Tail) last() []byte { return t.text[max(0, len(t.text)-t.most):] }
