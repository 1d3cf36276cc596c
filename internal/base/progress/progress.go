// Package progress tells a person what long work is doing: one line that is
// rewritten in place on a terminal, plain lines at a bearable pace elsewhere.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// plainEvery is how often live lines are repeated where they cannot be rewritten: often
// enough to see that work goes on, seldom enough for a CI log.
const plainEvery = 10 * time.Second

// Reporter writes progress. Its methods may be called from several goroutines.
type Reporter struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    func() int
	shown    bool // a live line stands on the terminal
	lastLive time.Time
	now      func() time.Time
	// parts are live lines of work side by side, in one line; whole is the reporter that a part is of.
	parts    []string
	parent   *Reporter
	part     int
	liveOnly bool // of a part: lines that stay are not shown
}

// New returns a reporter. On a terminal width tells its columns; elsewhere it is nil.
func New(w io.Writer, width func() int) *Reporter {
	return &Reporter{w: w, terminal: width != nil, width: width, now: time.Now}
}

// Part reports on one of several works side by side: the live lines of all parts stand next to
// each other in the one of r.
func (r *Reporter) Part() *Reporter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, "")
	return &Reporter{parent: r, part: len(r.parts) - 1}
}

// LivePart reports as a part whose lines that stay nobody needs: they are told by whoever began the work.
func (r *Reporter) LivePart() *Reporter {
	p := r.Part()
	p.liveOnly = true
	return p
}

// showPart shows the live line of a part; "" for none.
func (r *Reporter) showPart(part int, line string) {
	r.mu.Lock()
	r.parts[part] = line
	shown := slices.DeleteFunc(slices.Clone(r.parts), func(s string) bool { return s == "" })
	r.mu.Unlock()
	if len(shown) > 0 {
		r.Livef("%s", strings.Join(shown, " | "))
	}
}

// Discard reports to nobody.
func Discard() *Reporter { return New(io.Discard, nil) }

// Linef writes a line that stays.
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

// Livef shows a line that the next one replaces.
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

// Write writes whole lines of somebody else, such as a log's, which the live line neither
// swallows nor stands in.
func (r *Reporter) Write(lines []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	return r.w.Write(lines)
}

// Done removes a live line that still stands.
func (r *Reporter) Done() {
	if r.parent != nil {
		r.parent.showPart(r.part, "")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
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
