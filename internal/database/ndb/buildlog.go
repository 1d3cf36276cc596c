package ndb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/tail"
)

// logged runs a program in a folder and adds what it prints to a log; lines go to watch,
// too, where there is one. Its error holds the lines of the log that tell of errors.
func logged(ctx context.Context, log, dir string, watch io.Writer, name string, args ...string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("writing the build's log: %w", err)
	}
	last := tail.New(tailSize)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
	writers := []io.Writer{f, last}
	if watch != nil {
		writers = append(writers, watch)
	}
	cmd.Stdout = io.MultiWriter(writers...)
	cmd.Stderr = cmd.Stdout
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil:
		err = fmt.Errorf("%s: %w; all of it is in %s, and here are lines that tell why:\n%s", name, err, log, failureLines(last.String()))
	}
	return errors.Join(err, f.Close())
}

// tailSize is in bytes: a compiler's error is of some hundred, among those of others.
const tailSize = 64 << 10

// trouble begins what compilers, make and CMake have to say of errors.
var trouble = regexp.MustCompile(`(?i)\b(error|fatal|undefined reference|killed|no space left)\b`)

// failureLines is the last lines that tell of errors, or the last ones of all.
func failureLines(text string) string {
	lines := strings.Split(text, "\n")
	quiet := func(l string) bool { return progressLine.MatchString(l) || !trouble.MatchString(l) } // a file may be called error.cpp
	if told := slices.DeleteFunc(slices.Clone(lines), quiet); len(told) > 0 {
		lines = told
	}
	return strings.Join(lines[max(0, len(lines)-6):], "\n")
}

// progress reads how far make or ninja is.
type progress struct {
	say  func(percent int)
	line []byte
	told int // the last percentage that was told
}

// progressStep is how many per cent lie between two messages.
const progressStep = 5

// progressLine is "[ 34%] Building ..." of make or "[12/643] Building ..." of ninja.
var progressLine = regexp.MustCompile(`^\[\s*(\d+)(?:%|/(\d+))\]`)

func (p *progress) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	for {
		i := bytes.IndexByte(p.line, '\n')
		if i < 0 {
			return len(b), nil
		}
		if n, ok := percent(string(p.line[:i])); ok && n >= p.told+progressStep {
			p.told = n
			p.say(n)
		}
		p.line = p.line[i+1:]
	}
}

// percent is what a line says of how far the build is.
func percent(line string) (int, bool) {
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || m[2] == "" {
		return n, err == nil
	}
	all, err := strconv.Atoi(m[2])
	if err != nil || all == 0 {
		return 0, false
	}
	return 100 * n / all, true
}
