package hbase

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/files"
)

type client struct {
	*bridge
	slot    *slot
	timeout time.Duration // of an operation that nothing else bounds
	release func() error
	frame   []byte
	names   database.FieldNames
	fields  []load.Field
	retries atomic.Int64
}

var (
	_ load.Retrier    = (*client)(nil)
	_ load.Counter    = (*client)(nil)
	_ load.Dropper    = (*client)(nil)
	_ load.BulkClient = (*client)(nil)
)

func (c *client) Retries() int64 { return c.retries.Load() }

func (c *client) beginRequest(op byte, table, key string) {
	c.frame = appendName(appendName(newFrame(c.frame, op), table), key)
}

func (c *client) appendFieldNames(limit int, fields []string) {
	c.frame = binary.BigEndian.AppendUint32(c.frame, uint32(limit))
	c.frame = binary.BigEndian.AppendUint16(c.frame, uint16(len(fields)))
	for _, f := range fields {
		c.frame = appendName(c.frame, f)
	}
}

// send sends the request. An operation without a reply may have been carried out.
func (c *client) send(ctx context.Context) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, load.Failed(errorClass(err), "", err)
	}
	limit := c.timeout
	deadline, bounded := ctx.Deadline()
	if bounded {
		limit = time.Until(deadline)
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	r, err := c.call(ctx, c.slot, c.frame, limit)
	if err != nil {
		return r, load.Unknown(errorClass(err), "", err)
	}
	if r.retries > 0 {
		c.retries.Add(int64(r.retries))
	}
	return r, r.err()
}

func errorClass(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, errBridge):
		return "bridge"
	}
	return "error"
}

func (c *client) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	c.beginRequest(opRead, table, key)
	c.appendFieldNames(1, fields)
	r, err := c.send(ctx)
	if err != nil {
		return dst, err
	}
	d := decoder{b: r.body}
	dst = d.record(dst, &c.names)
	return dst, d.err
}

func (c *client) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	if count <= 0 {
		return 0, nil
	}
	c.beginRequest(opScan, table, start)
	c.appendFieldNames(count, fields)
	r, err := c.send(ctx)
	if err != nil {
		return 0, err
	}
	d := decoder{b: r.body}
	seen := 0
	for n := d.uint32(); seen < n && d.err == nil; seen++ {
		key := d.name()
		c.fields = d.record(c.fields[:0], &c.names)
		if visit != nil && d.err == nil {
			visit(string(key), c.fields)
		}
	}
	return seen, d.err
}

func (c *client) Update(ctx context.Context, table, key string, values []load.Field) error {
	c.beginWrite(table, 1)
	c.appendRecord(key, values)
	_, err := c.send(ctx)
	return err
}

func (c *client) beginWrite(table string, records int) {
	c.frame = appendName(newFrame(c.frame, opWrite), table)
	c.frame = binary.BigEndian.AppendUint32(c.frame, uint32(records))
}

func (c *client) appendRecord(key string, values []load.Field) {
	c.frame = binary.BigEndian.AppendUint16(appendName(c.frame, key), uint16(len(values)))
	for _, f := range values {
		c.frame = appendValue(appendName(c.frame, f.Name), f.Value)
	}
}

func (c *client) InsertAll(ctx context.Context, table string, records []load.Record) error {
	if len(records) == 0 {
		return nil
	}
	c.beginWrite(table, len(records))
	for _, r := range records {
		c.appendRecord(r.Key, r.Values)
	}
	_, err := c.send(ctx)
	return err
}

// Insert implements load.Client: to HBase it is the same as an update.
func (c *client) Insert(ctx context.Context, table, key string, values []load.Field) error {
	return c.Update(ctx, table, key, values)
}

func (c *client) Delete(ctx context.Context, table, key string) error {
	c.beginRequest(opDelete, table, key)
	_, err := c.send(ctx)
	return err
}

func (c *client) Close() error {
	if c.release == nil {
		return nil
	}
	c.bridge.releaseSlot(c.slot)
	return c.release()
}

func (*HBase) Properties() []string { return Properties() }

// Open implements database.Database: workers with the same properties share a bridge.
func (d *HBase) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	bridge, release, err := d.bridges.Acquire(ctx, s, database.ClientSource[*bridge]{
		Open:  func(ctx context.Context) (*bridge, error) { return d.connect(ctx, s) },
		Close: (*bridge).Close,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of hbase: %w", err)
	}
	c := &client{bridge: bridge, slot: bridge.acquireSlot(), timeout: s.timeout, release: release}
	if s.table == "" {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	now, err := admin{bridge}.queryState(ctx)
	if err == nil {
		err = admin{bridge}.createTable(ctx, s.table, s.family, durabilities["use_default"], regionsPerNode*max(1, len(now.live)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of hbase at %s: %w", s.quorum, err), c.Close())
	}
	return c, nil
}

// createTimeout bounds the first connection to a cluster and the creation of a table.
const createTimeout = 30 * time.Second

func (*HBase) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropQuorum: strings.Join(servers, ",")}
}

// ServerVersion implements database.External: the version of the master that the servers of ZooKeeper name.
func (d *HBase) ServerVersion(ctx context.Context, _ string, properties map[string]string) (string, error) {
	c, err := d.Open(ctx, properties)
	if err != nil {
		return "", err
	}
	lines, err := admin{c.(*client).bridge}.query(ctx, "version")
	return strings.Join(lines, ""), errors.Join(err, c.Close())
}

func (c *client) Count(ctx context.Context, table string) (int64, error) {
	return admin{c.bridge}.countRows(ctx, table)
}

func (c *client) DropTable(ctx context.Context, table string) error {
	_, err := admin{c.bridge}.query(ctx, "drop", table)
	return err
}

// connect uses the shared bridge if it has the same settings, or starts one.
func (d *HBase) connect(ctx context.Context, s settings) (*bridge, error) {
	if s.bridgeAddr != "" && s.isDefault() && s.table == "" {
		b, err := dialBridge(ctx, s.bridgeAddr)
		if err == nil {
			if err = b.warmUp(ctx); err == nil {
				return b, nil
			}
			_ = b.Close() // it has ended
		}
		if ctx.Err() != nil {
			return nil, err
		}
	}
	if s.java == "" || s.classpath == "" {
		in, err := d.Find("", "")
		if err != nil {
			return nil, err
		}
		jar, err := localBuildHost.bridgeClasses(ctx, in.Programs["java"], in.Dir, "")
		if err != nil {
			return nil, err
		}
		s.java, s.classpath = in.Programs["java"], classpath(jar, in.Dir)
	}
	b, err := startLocalBridge(s.bridgeCommand(ctx, files.Local{}))
	if err != nil {
		return nil, err
	}
	if s.table != "" { // which may be missing
		return b, nil
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}
