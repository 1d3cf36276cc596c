package process

import (
	"os"
	"slices"
	"strings"
)

// tailBytes is how much of the end of a log Tail looks at.
const tailBytes = 64 << 10

// Tail returns the last n lines of the log, "" where there is none. Of a program in Go that
// crashed they are the first n of its report: its last lines tell who called whom, the first
// ones what happened.
func (p *Process) Tail(n int) string {
	log, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer log.Close()
	size, err := log.Seek(0, 2)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, tailBytes))
	if _, err := log.ReadAt(text, size-int64(len(text))); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	from := max(0, len(lines)-n)
	if at := crash(lines); at >= 0 {
		from = min(from, at)
	}
	return strings.Join(lines[from:min(from+n, len(lines))], "\n")
}

// crash is the line that begins the report of a Go program's crash with which a log ends, -1
// where it ends otherwise.
func crash(lines []string) int {
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "\t") || !strings.Contains(last, ".go:") {
		return -1 // no frame of a stack
	}
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return i
		}
	}
	return -1
}
