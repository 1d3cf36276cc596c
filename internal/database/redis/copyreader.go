package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// OpenMember implements database.Replicated. A replica in READONLY mode answers for its master's slots.
func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	m := c.On(node)
	if m == nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, database.ErrNotMember)
	}
	if m.Halted() {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, errHalted)
	}
	r := &router{
		settings: settings{cluster: "false", timeout: defaultTimeout},
		dial:     host.Dialer(m.host, adminTimeout), hello: []string{"READONLY"}, alone: true,
	}
	r.nodes.Store(&[]string{m.addr}) // every slot's owner is node 0
	reader := &copyReader{client: &client{router: r}, member: m}
	if _, err := reader.Read(ctx, "", "", nil, nil); err != nil && !errors.Is(err, load.ErrNotFound) && !errors.Is(err, load.ErrNotHeld) {
		return nil, errors.Join(fmt.Errorf("reading the copy of %s: %w", node, err), reader.Close())
	}
	return reader, nil
}

type copyReader struct {
	client *client
	member *member
}

var _ load.Client = (*copyReader)(nil)

var errReadOnly = fmt.Errorf("%w: a member's own copy is read only", load.ErrUnsupported)

func markNotHeld(err error) error {
	var e *load.OpError
	if errors.As(err, &e) && e.Class == classMoved {
		return fmt.Errorf("%w: %w", load.ErrNotHeld, e.Err)
	}
	return err
}

func (r *copyReader) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	dst, err := r.client.Read(ctx, table, key, fields, dst)
	return dst, markNotHeld(err)
}

const scanPage = 1000

// Scan implements load.Client. It reads all keys, because the index may be on another member.
func (r *copyReader) Scan(
	ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field),
) (int, error) {
	var keys []string
	iter := r.member.admin.Scan(ctx, 0, "", scanPage).Iterator()
	for iter.Next(ctx) {
		if k := iter.Val(); k >= start && !slices.Contains(indexKeys[:], k) {
			keys = append(keys, k)
		}
	}
	if err := iter.Err(); err != nil {
		return 0, fmt.Errorf("listing the keys of %s: %w", r.member.host.Name(), err)
	}
	slices.Sort(keys)
	seen := 0
	var record []load.Field
	for _, key := range slices.Compact(keys) {
		if seen == count {
			break
		}
		var err error
		record, err = r.Read(ctx, table, key, fields, record[:0])
		if errors.Is(err, load.ErrNotFound) || errors.Is(err, load.ErrNotHeld) {
			continue
		}
		if err != nil {
			return seen, err
		}
		seen++
		if visit != nil {
			visit(key, record)
		}
	}
	return seen, nil
}

func (r *copyReader) Update(context.Context, string, string, []load.Field) error { return errReadOnly }

func (r *copyReader) Insert(context.Context, string, string, []load.Field) error { return errReadOnly }

func (r *copyReader) Delete(context.Context, string, string) error { return errReadOnly }

func (r *copyReader) Close() error { return r.client.Close() }
