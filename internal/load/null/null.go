// Package null is a database that answers at once, or after a given time, and keeps
// nothing but the numbers of what it was asked: what is left of a drive when the
// database costs nothing.
package null

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/load"
)

// Name is how it is asked for.
const Name = "null"

// Database is shared by its clients.
type Database struct {
	records atomic.Int64
	// operations that clients with PropertyEvery were asked for.
	operations atomic.Int64
}

// Properties of a client.
const (
	PropertyDelay = "null.delay" // time to an answer ("2ms")
	PropertyEvery = "null.every" // one operation in so many fails, 0 for none
	PropertyError = "null.error" // class of the failures, default "refused"
)

type client struct {
	db     *Database
	delay  time.Duration
	class  string
	every  int64
	record []load.Field
}

// Open returns a client.
func (d *Database) Open(_ context.Context, properties map[string]string) (load.Client, error) {
	c := &client{db: d, class: "refused"}
	var err error
	if v := strings.TrimSpace(properties[PropertyDelay]); v != "" {
		if c.delay, err = time.ParseDuration(v); err != nil || c.delay < 0 {
			return nil, fmt.Errorf("property %s: %q is not a duration such as 2ms", PropertyDelay, v)
		}
	}
	if v := strings.TrimSpace(properties[PropertyEvery]); v != "" {
		if c.every, err = strconv.ParseInt(v, 10, 64); err != nil || c.every < 0 {
			return nil, fmt.Errorf("property %s: %q is not a whole number", PropertyEvery, v)
		}
	}
	if v := strings.TrimSpace(properties[PropertyError]); v != "" {
		c.class = v
	}
	for i := range 10 {
		c.record = append(c.record, load.Field{Name: "field" + strconv.Itoa(i), Value: make([]byte, 100)})
	}
	return c, nil
}

// answer waits and fails as the properties ask for.
func (c *client) answer(ctx context.Context) error {
	if c.delay > 0 {
		if err := linger.For(ctx, c.delay); err != nil {
			return load.Unknown("timeout", "", err)
		}
	}
	if c.every > 0 {
		if c.db.operations.Add(1)%c.every == 0 {
			return load.Failed(c.class, "", fmt.Errorf("every operation number %d fails", c.every))
		}
	}
	return nil
}

func (c *client) Read(ctx context.Context, _, _ string, _ []string, dst []load.Field) ([]load.Field, error) {
	return append(dst, c.record...), c.answer(ctx)
}

func (c *client) Scan(ctx context.Context, _, start string, count int, _ []string, visit func(string, []load.Field)) (int, error) {
	if visit != nil {
		for range count {
			visit(start, c.record)
		}
	}
	return count, c.answer(ctx)
}

func (c *client) Update(ctx context.Context, _, _ string, _ []load.Field) error {
	return c.answer(ctx)
}

func (c *client) Insert(ctx context.Context, _, _ string, _ []load.Field) error {
	err := c.answer(ctx)
	if err == nil {
		c.db.records.Add(1)
	}
	return err
}

func (c *client) Delete(ctx context.Context, _, _ string) error { return c.answer(ctx) }

func (c *client) Count(context.Context, string) (int64, error) { return c.db.records.Load(), nil }

func (c *client) Close() error { return nil }
