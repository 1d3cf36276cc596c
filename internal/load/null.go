package load

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/base/linger"
)

// NullName is the name of the null database.
const NullName = "null"

// NullDatabase is a database that stores nothing and answers at once or after a delay. It measures
// the cost of the driver itself. Its clients share it.
type NullDatabase struct {
	records atomic.Int64
	// operations counts the operations of clients with nullFailEvery.
	operations atomic.Int64
}

const (
	NullDelay      = "null.delay" // response time ("2ms")
	nullFailEvery  = "null.every" // every n-th operation fails, 0 for none
	nullErrorClass = "null.error" // class of the failures, default "refused"
)

type nullClient struct {
	db     *NullDatabase
	delay  time.Duration
	class  string
	every  int64
	record []Field
}

func (d *NullDatabase) Open(_ context.Context, properties map[string]string) (Client, error) {
	c := &nullClient{db: d, class: "refused"}
	var err error
	if v := strings.TrimSpace(properties[NullDelay]); v != "" {
		if c.delay, err = time.ParseDuration(v); err != nil || c.delay < 0 {
			return nil, fmt.Errorf("property %s: %q is not a duration such as 2ms", NullDelay, v)
		}
	}
	if v := strings.TrimSpace(properties[nullFailEvery]); v != "" {
		if c.every, err = strconv.ParseInt(v, 10, 64); err != nil || c.every < 0 {
			return nil, fmt.Errorf("property %s: %q is not a whole number", nullFailEvery, v)
		}
	}
	if v := strings.TrimSpace(properties[nullErrorClass]); v != "" {
		c.class = v
	}
	for i := range 10 {
		c.record = append(c.record, Field{Name: "field" + strconv.Itoa(i), Value: make([]byte, 100)})
	}
	return c, nil
}

func (c *nullClient) respond(ctx context.Context) error {
	if c.delay > 0 {
		if err := linger.For(ctx, c.delay); err != nil {
			return Unknown("timeout", "", err)
		}
	}
	if c.every > 0 {
		if c.db.operations.Add(1)%c.every == 0 {
			return Failed(c.class, "", fmt.Errorf("every operation number %d fails", c.every))
		}
	}
	return nil
}

func (c *nullClient) Read(ctx context.Context, _, _ string, _ []string, dst []Field) ([]Field, error) {
	return append(dst, c.record...), c.respond(ctx)
}

func (c *nullClient) Scan(ctx context.Context, _, start string, count int, _ []string, visit func(string, []Field)) (int, error) {
	if visit != nil {
		for range count {
			visit(start, c.record)
		}
	}
	return count, c.respond(ctx)
}

func (c *nullClient) Update(ctx context.Context, _, _ string, _ []Field) error {
	return c.respond(ctx)
}

func (c *nullClient) Insert(ctx context.Context, _, _ string, _ []Field) error {
	err := c.respond(ctx)
	if err == nil {
		c.db.records.Add(1)
	}
	return err
}

func (c *nullClient) Delete(ctx context.Context, _, _ string) error { return c.respond(ctx) }

func (c *nullClient) Count(context.Context, string) (int64, error) { return c.db.records.Load(), nil }

func (c *nullClient) Close() error { return nil }
