package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/bearer"
	"skerry/systems/metadata"
)

const longTime = "2006-01-02T15:04:05.000Z"

func appendText(b []byte, c metadata.Command, r metadata.Result) []byte {
	if r.Err != nil {
		return append(append(b, r.Err.Error()...), '\n')
	}
	switch c.Op {
	case metadata.Read:
		return append(b, r.Data...)
	case metadata.Stat:
		return appendStat(b, c.Path, r.Entries[0])
	case metadata.List, metadata.Find:
		for _, e := range r.Entries {
			if c.Long {
				b = appendLong(b, e)
			}
			b = append(append(b, e.Name...), '\n')
		}
	}
	return b
}

func kindLetter(k metadata.Kind) byte {
	switch k {
	case metadata.Directory:
		return 'd'
	case metadata.Virtual:
		return 'v'
	}
	return '-'
}

func appendMode(b []byte, mode uint16) []byte {
	const letters = "rwxrwxrwx"
	for i := range letters {
		if mode&(1<<(len(letters)-1-i)) != 0 {
			b = append(b, letters[i])
		} else {
			b = append(b, '-')
		}
	}
	return b
}

func appendLong(b []byte, e metadata.Entry) []byte {
	b = appendMode(append(b, kindLetter(e.Kind)), e.Mode)
	b = fmt.Appendf(b, " %10d ", e.Size)
	b = e.Time().UTC().AppendFormat(b, longTime)
	b = append(b, ' ')
	if e.Owner != "" {
		b = append(append(b, e.Owner...), ' ')
	}
	return b
}

func appendStat(b []byte, path string, e metadata.Entry) []byte {
	b = fmt.Appendf(b, "path: %s\nkind: %s\nid: %d\nmode: %04o\n", path, e.Kind, e.ID, e.Mode)
	if e.Kind == metadata.Directory {
		b = fmt.Appendf(b, "entries: %d\n", e.Size)
	} else {
		b = fmt.Appendf(b, "size: %d\n", e.Size)
	}
	return fmt.Appendf(b, "modified: %s\n", e.Time().UTC().Format(time.RFC3339Nano))
}

type answer struct {
	status int
	next   string // start of the next page
	body   []byte
	// rest is the command for the remaining pages of a listing without a limit; nil if the answer is complete.
	rest *metadata.Command
}

func (s *Server) runText(ctx context.Context, scope bearer.Scope, body string) answer {
	body = strings.TrimRight(body, "\r\n")
	if strings.IndexByte(body, '\n') >= 0 {
		return s.runTextBatch(ctx, scope, strings.Split(body, "\n"))
	}
	start := time.Now()
	c, err := metadata.Parse(body)
	r := metadata.Result{Err: err}
	if err == nil {
		commands := metadata.AddIdentities(metadata.RequestFrom(ctx).Identity, []metadata.Command{c})
		c = commands[0]
		r = restrict(s.service, scope).Do(ctx, commands)[0]
	}
	s.metrics.observe(c.Op, r.Err, start)
	return newAnswer(c, r)
}

func newAnswer(c metadata.Command, r metadata.Result) answer {
	a := answer{status: metadata.HTTPStatus(r.Err), next: r.Next, body: appendText(nil, c, r)}
	if r.Next != "" && c.Limit == 0 {
		c.After = r.Next
		a.rest, a.next = &c, ""
	}
	return a
}

// runTextBatch answers each command with "STATUS BYTES" and the output. Malformed lines do not stop the others.
func (s *Server) runTextBatch(ctx context.Context, scope bearer.Scope, lines []string) answer {
	commands := make([]metadata.Command, 0, len(lines))
	results := make([]metadata.Result, 0, len(lines))
	var runs []int // indices in results of the commands
	all := make([]metadata.Command, 0, len(lines))
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if strings.Trim(line, " \t") == "" {
			continue
		}
		c, err := metadata.Parse(line)
		all, results = append(all, c), append(results, metadata.Result{Err: err})
		if err == nil {
			commands, runs = append(commands, c), append(runs, len(results)-1)
		}
	}
	start := time.Now()
	commands = metadata.AddIdentities(metadata.RequestFrom(ctx).Identity, commands)
	for i, r := range restrict(s.service, scope).Do(ctx, commands) {
		results[runs[i]] = r
	}
	var into, output []byte
	for i, r := range results {
		s.metrics.observe(all[i].Op, r.Err, start)
		output = appendText(output[:0], all[i], r)
		into = strconv.AppendInt(into, int64(metadata.HTTPStatus(r.Err)), 10)
		into = append(into, ' ')
		into = strconv.AppendInt(into, int64(len(output)), 10)
		into = append(append(into, '\n'), output...)
	}
	return answer{status: 200, body: into}
}
