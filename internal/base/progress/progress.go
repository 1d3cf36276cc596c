// Package progress reports the progress of long operations: on a terminal as one line that is rewritten in place,
// elsewhere as plain lines at a limited rate.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// plainEvery is the minimum interval of live lines without a terminal, short enough to show that work continues and
// long enough for a CI log.
const plainEvery = 10 * time.Second

// Reporter writes progress. Its methods may be called from several goroutines.
type Reporter struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    func() int
	shown    bool // the terminal shows a live line
	lastLive time.Time
	now      func() time.Time
	// parts are the live lines of concurrent operations, shown as one line. parent is the reporter of a part.
	parts    []string
	parent   *Reporter
	part     int
	liveOnly bool // of a part: permanent lines are dropped
}

// New returns a reporter. width returns the columns of the terminal; it is nil if w is not a terminal.
func New(w io.Writer, width func() int) *Reporter {
	return &Reporter{w: w, terminal: width != nil, width: width, now: time.Now}
}

// Part returns a reporter for one of several concurrent operations. The live line of r joins those of all parts.
func (r *Reporter) Part() *Reporter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, "")
	return &Reporter{parent: r, part: len(r.parts) - 1}
}

// LivePart returns a part that drops permanent lines, for operations whose caller prints the result.
func (r *Reporter) LivePart() *Reporter {
	p := r.Part()
	p.liveOnly = true
	return p
}

// showPart sets the live line of a part; "" removes it.
func (r *Reporter) showPart(part int, line string) {
	r.mu.Lock()
	r.parts[part] = line
	shown := slices.DeleteFunc(slices.Clone(r.parts), func(s string) bool { return s == "" })
	r.mu.Unlock()
	if len(shown) > 0 {
		r.Livef("%s", strings.Join(shown, " | "))
	}
}

// Linef writes a permanent line.
func (r *Reporter) Linef(format string, args ...any) {
	if r.parent != nil {
		if !r.liveOnly {
			r.parent.Linef(format, args...)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	fmt.Fprintf(r.w, format+"\n", args...)
	r.lastLive = r.now()
}

// Livef shows a line that the next line replaces.
func (r *Reporter) Livef(format string, args ...any) {
	if r.parent != nil {
		r.parent.showPart(r.part, fmt.Sprintf(format, args...))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if !r.terminal {
		if now := r.now(); now.Sub(r.lastLive) >= plainEvery {
			r.lastLive = now
			fmt.Fprintln(r.w, line)
		}
		return
	}
	if cols := r.width(); cols > 0 {
		line = truncate(line, cols-1)
	}
	fmt.Fprintf(r.w, "\r\x1b[K%s", line)
	r.shown = true
}

// Write writes complete lines of another source, such as a log, and removes the live line first.
func (r *Reporter) Write(lines []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	return r.w.Write(lines)
}

// Done removes the live line, with those of all parts.
func (r *Reporter) Done() {
	if r.parent != nil {
		r.parent.showPart(r.part, "")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.parts)
	r.clear()
}

func (r *Reporter) clear() {
	if r.shown {
		fmt.Fprint(r.w, "\r\x1b[K")
		r.shown = false
	}
}

func truncate(s string, n int) string {
	runes := []rune(s)
	if n < 1 || len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
