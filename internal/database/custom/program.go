package custom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"skerry/internal/load"
)

const (
	// openTimeout bounds the answer to open.
	openTimeout = 30 * time.Second
	// closeGrace is what a program gets to end after close.
	closeGrace = 2 * time.Second
)

// programClient is one worker's: a process that carries operations out. A process that
// broke the protocol or did not answer in time is ended, and the next operation starts
// another.
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

// ensureRunning starts the program where none runs.
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
		ended := p.kill() // only then is its complaint whole
		return errors.Join(fmt.Errorf("%s: open: %w%s", c.argv[0], err, p.stderrSuffix()), ended)
	}
	c.running = p
	return nil
}

// send carries an operation out.
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
	// What it would answer later belongs to no operation any more.
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

// Read implements load.Client.
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

// Scan implements load.Client.
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

// Insert implements load.Client.
func (c *programClient) Insert(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, "insert", table, key, values)
}

// Update implements load.Client.
func (c *programClient) Update(ctx context.Context, table, key string, values []load.Field) error {
	return c.write(ctx, "update", table, key, values)
}

func (c *programClient) write(ctx context.Context, op, table, key string, values []load.Field) error {
	_, err := c.send(ctx, request{Op: op, Table: table, Key: key, Values: fieldValues(values)})
	return err
}

// Delete implements load.Client.
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
