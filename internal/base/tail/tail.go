// Package tail keeps the end of what a program says, for whoever is told that it failed.
package tail

import (
	"strings"
	"sync"
)

// Tail keeps the last bytes that are written to it. Its methods may be called from several
// goroutines.
type Tail struct {
	most int
	mu   sync.Mutex
	text []byte
}

// New keeps so many bytes.
func New(most int) *Tail { return &Tail{most: most} }

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*t.most { // and not at each line
		t.text = append(t.text[:0], t.last()...)
	}
	return len(p), nil
}

// String is what it keeps, without white space around.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last()))
}

func (t *Tail) last() []byte { return t.text[max(0, len(t.text)-t.most):] }
