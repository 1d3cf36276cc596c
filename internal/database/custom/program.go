package custom

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/load"
)

const (
	// openTimeout bounds the answer to open.
	openTimeout = 30 * time.Second
	// closeGrace is the time between close and SIGKILL.
	closeGrace = 2 * time.Second
)

// programClient belongs to one worker. After a protocol error or a timeout the process is replaced.
type programClient struct {
	argv       []string
	properties map[string]string
	running    *program
}

var _ load.Client = (*programClient)(nil)

func openProgram(ctx context.Context, argv []string, properties map[string]string) (load.Client, error) {
	c := &programClient{argv: argv, properties: properties}
	if err := c.ensureRunning(ctx); err != nil {
		return nil, fmt.Errorf("opening a client: %w", err)
	}
	return c, nil
}

func (c *programClient) ensureRunning(ctx context.Context) error {
	if c.running != nil {
		return nil
	}
	p, err := startProgram(c.argv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	answer, err := p.call(ctx, request{Op: "open", Properties: c.properties})
	if err == nil {
		err = answer.err()
	}
	if err != nil {
		ended := p.kill() // standard error is complete only then
		return errors.Join(fmt.Errorf("%s: open: %w%s", c.argv[0], err, p.stderrSuffix()), ended)
	}
	c.running = p
	return nil
}

func (c *programClient) send(ctx context.Context, r request) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, load.Failed("canceled", "", err)
	}
	if err := c.ensureRunning(ctx); err != nil {
		return reply{}, load.Failed("program", "", err)
	}
	a, err := c.running.call(ctx, r)
	if err == nil {
		return a, a.err()
	}
	// A late answer must not be taken for that of the next operation.
	p := c.running
	c.running = nil
	ended := p.kill()
	class := "program"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		class = "timeout"
	case errors.Is(err, context.Canceled):
		class = "canceled"
	}
	return reply{}, load.Unknown(class, "", errors.Join(fmt.Errorf("%s: %w%s", r.Op, err, p.stderrSuffix()), ended))
}

func (c *programClient) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	a, err := c.send(ctx, request{Op: "read", Table: table, Key: key, Fields: fields})
	if err != nil {
		return dst, err
	}
	return appendFields(dst, a.Values), nil
}

func appendFields(dst []load.Field, values map[string][]byte) []load.Field {
	for name, value := range values {
		dst = append(dst, load.Field{Name: name, Value: value})
	}
	return dst
}

func (c *programClient) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	a, err := c.send(ctx, request{Op: "scan", Table: table, Key: start, Count: count, Fields: fields})
	if err != nil {
		return 0, err
	}
	var row []load.Field
	for _, r := range a.Records {
		if visit != nil {
			row = appendFields(row[:0], r.Values)
			visit(r.Key, row)
		}
	}
	return len(a.Records), nil
}

func (c *programClient) Insert(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, "insert", table, key, values)
}

func (c *programClient) Update(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, "update", table, key, values)
}

func (c *programClient) write(ctx context.Context, op, table, key string, values []load.Field) error {
	_, err := c.send(ctx, request{Op: op, Table: table, Key: key, Values: fieldValues(values)})
	return err
}

func (c *programClient) Delete(ctx context.Context, table, key string) error {
	_, err := c.send(ctx, request{Op: "delete", Table: table, Key: key})
	return err
}

// Close implements load.Client: the program is told, and its input ends.
func (c *programClient) Close() error {
	p := c.running
	if p == nil {
		return nil
	}
	c.running = nil
	late := time.AfterFunc(closeGrace, p.signal)
	defer late.Stop()
	_, _ = io.WriteString(p.in, `{"id":0,"op":"close"}`+"\n") // it may have ended
	return errors.Join(ignoreClosed(p.in.Close()), p.wait())
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

const (
	// maxLine bounds an answer.
	maxLine = 64 << 20
	// stderrTail is how much standard error an error quotes.
	stderrTail = 2 << 10
)

type program struct {
	cmd     *exec.Cmd
	calls   int64
	in      io.WriteCloser
	lines   chan []byte // closed at its end
	stderr  *tail.Tail
	reading sync.WaitGroup
}

func startProgram(argv []string) (*program, error) {
	p := &program{cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan []byte), stderr: tail.New(stderrTail)}
	p.cmd.Stderr = p.stderr
	// A group of its own: what it started ends with it, and holds none of its pipes open.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	p.reading.Go(func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
		for scanner.Scan() {
			p.lines <- append([]byte{}, scanner.Bytes()...)
		}
	})
	return p, nil
}

func (p *program) call(ctx context.Context, r request) (reply, error) {
	if deadline, ok := ctx.Deadline(); ok {
		r.TimeoutMS = max(1, time.Until(deadline).Milliseconds())
	}
	p.calls++
	r.ID = p.calls
	text, err := json.Marshal(r)
	if err != nil {
		return reply{}, err
	}
	if err := p.send(ctx, append(text, '\n')); err != nil {
		return reply{}, err
	}
	select {
	case line, ok := <-p.lines:
		var a reply
		if !ok {
			return a, errProgramEnded
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return a, fmt.Errorf("%w: %w in %.100q", errProtocol, err, line)
		}
		if a.ID != r.ID {
			return a, fmt.Errorf("%w: answer %d to request %d: %.100q", errProtocol, a.ID, r.ID, line)
		}
		return a, nil
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// send writes a line. A program that does not read its input is given up at the deadline.
func (p *program) send(ctx context.Context, line []byte) error {
	deadline, _ := ctx.Deadline() // the zero time is none
	if d, ok := p.in.(interface{ SetWriteDeadline(time.Time) error }); ok {
		if err := d.SetWriteDeadline(deadline); err != nil {
			return fmt.Errorf("%w: %w", errProgramEnded, err)
		}
	}
	_, err := p.in.Write(line)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.DeadlineExceeded
	case err != nil:
		return fmt.Errorf("%w: %w", errProgramEnded, err)
	}
	return nil
}

func (p *program) kill() error {
	p.signal()
	return p.wait()
}

func (p *program) signal() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) } // it may have ended

// wait waits for a program that is ending. Its exit status does not matter.
func (p *program) wait() error {
	done := make(chan struct{})
	go func() { // so that the reader never blocks
		for range p.lines {
		}
		close(done)
	}()
	p.reading.Wait()
	<-done
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// stderrSuffix returns the end of standard error, introduced, for the end of an error.
func (p *program) stderrSuffix() string {
	if s := p.stderr.String(); s != "" {
		return "; standard error: " + s
	}
	return ""
}

// request is a line that the program reads. JSON encodes values as Base64.
type request struct {
	ID         int64             `json:"id"` // the answer has it too
	Op         string            `json:"op"` // open, read, scan, insert, update, delete, close
	Table      string            `json:"table,omitempty"`
	Key        string            `json:"key,omitempty"`
	Count      int               `json:"count,omitempty"`      // of a scan
	Fields     []string          `json:"fields,omitempty"`     // to read; all where there are none
	Values     map[string][]byte `json:"values,omitempty"`     // to write
	Properties map[string]string `json:"properties,omitempty"` // of open
	TimeoutMS  int64             `json:"timeout_ms,omitempty"` // the client stops waiting after that
}

type reply struct {
	ID int64 `json:"id"`
	// Status is ok, not_found, failed (certainly not done), unknown (may have been done) or unsupported.
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

var (
	errProgramEnded = errors.New("the program has ended")
	errProtocol     = errors.New("the program broke the protocol")
)

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
