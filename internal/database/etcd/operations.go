package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/base/varint"
	"skerry/internal/database"
	"skerry/internal/load"
)

// maxConflicts is how often an update is tried while other clients change its record.
const maxConflicts = 16

var errConflict = fmt.Errorf("the record was changed by others at each of %d tries", maxConflicts)

func (c *client) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	var got *clientv3.GetResponse
	err := c.do(ctx, func(ctx context.Context, conn *clientv3.Client) (err error) {
		got, err = conn.Get(ctx, key, options...)
		return err
	})
	return got, err
}

func (c *client) readOptions(options ...clientv3.OpOption) []clientv3.OpOption {
	if c.serializable {
		options = append(options, clientv3.WithSerializable())
	}
	return options
}

func (c *client) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	got, err := c.get(ctx, recordKey(table, key), c.readOptions()...)
	switch {
	case err != nil:
		return dst, err
	case len(got.Kvs) == 0:
		return dst, load.ErrNotFound
	}
	return c.decodeFields(dst, got.Kvs[0], fields)
}

func (c *client) decodeFields(dst []load.Field, kv *mvccpb.KeyValue, fields []string) ([]load.Field, error) {
	dst, err := c.decode.fields(dst, kv.Value, fields)
	if err != nil {
		return dst, load.Failed(classRecord, "", fmt.Errorf("reading %s: %w", kv.Key, err))
	}
	return dst, nil
}

func (c *client) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	got, err := c.get(ctx, recordKey(table, start), c.readOptions(clientv3.WithRange(tableEnd(table)), clientv3.WithLimit(int64(count)))...)
	if err != nil {
		return 0, err
	}
	var record []load.Field
	for _, kv := range got.Kvs {
		if record, err = c.decodeFields(record[:0], kv, fields); err != nil {
			return 0, err
		}
		if visit != nil {
			visit(keySuffix(kv.Key, table), record)
		}
	}
	return len(got.Kvs), nil
}

// Insert implements load.Client. It writes the whole record, whether there is one or not.
func (c *client) Insert(ctx context.Context, table, key string, values []load.Field) error {
	c.buffer = appendRecord(c.buffer[:0], values)
	text := string(c.buffer)
	return c.do(ctx, func(ctx context.Context, conn *clientv3.Client) error {
		_, err := conn.Put(ctx, recordKey(table, key), text)
		return err
	})
}

// maxTxn is etcd's default limit of operations per transaction (--max-txn-ops).
const maxTxn = 128

func (c *client) InsertAll(ctx context.Context, table string, records []load.Record) error {
	for part := range slices.Chunk(records, maxTxn) {
		puts := make([]clientv3.Op, len(part))
		for i, r := range part {
			c.buffer = appendRecord(c.buffer[:0], r.Values)
			puts[i] = clientv3.OpPut(recordKey(table, r.Key), string(c.buffer))
		}
		if err := c.do(ctx, func(ctx context.Context, conn *clientv3.Client) error {
			_, err := conn.Txn(ctx).Then(puts...).Commit()
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Update implements load.Client: see the package's comment.
func (c *client) Update(ctx context.Context, table, key string, values []load.Field) error {
	full := recordKey(table, key)
	got, err := c.get(ctx, full, clientv3.WithSerializable())
	if err != nil {
		return asNotDone(err)
	}
	kvs := got.Kvs
	for range maxConflicts {
		var revision int64 // of no record
		then := []clientv3.Op{}
		if len(kvs) > 0 {
			revision = kvs[0].ModRevision
			if c.fields, err = c.decodeFields(c.fields[:0], kvs[0], nil); err != nil {
				return err
			}
			c.fields = mergeFields(c.fields, values)
			c.buffer = appendRecord(c.buffer[:0], c.fields)
			then = append(then, clientv3.OpPut(full, string(c.buffer)))
		}
		var answer *clientv3.TxnResponse
		if err := c.do(ctx, func(ctx context.Context, conn *clientv3.Client) (err error) {
			answer, err = conn.Txn(ctx).
				If(clientv3.Compare(clientv3.ModRevision(full), "=", revision)).
				Then(then...).
				Else(clientv3.OpGet(full)).Commit()
			return err
		}); err != nil {
			return err
		}
		switch {
		case answer.Succeeded && len(kvs) == 0:
			return load.ErrNotFound
		case answer.Succeeded:
			return nil
		}
		kvs = answer.Responses[0].GetResponseRange().Kvs
		c.retries.Add(1)
	}
	return load.Failed(classConflict, "", errConflict)
}

// asNotDone marks the error of an operation that has not written anything yet as not done.
func asNotDone(err error) error {
	var e *load.OpError
	if errors.As(err, &e) {
		return load.Failed(e.Class, e.Node, e.Err)
	}
	return err
}

func (c *client) Delete(ctx context.Context, table, key string) error {
	var answer *clientv3.DeleteResponse
	err := c.do(ctx, func(ctx context.Context, conn *clientv3.Client) (err error) {
		answer, err = conn.Delete(ctx, recordKey(table, key))
		return err
	})
	if err == nil && answer.Deleted == 0 {
		return load.ErrNotFound
	}
	return err
}

func (c *client) Count(ctx context.Context, table string) (int64, error) {
	got, err := c.get(ctx, recordKey(table, ""), c.readOptions(clientv3.WithRange(tableEnd(table)), clientv3.WithCountOnly())...)
	if err != nil {
		return 0, err
	}
	return got.Count, nil
}

func (c *client) DropTable(ctx context.Context, table string) error {
	return c.do(ctx, func(ctx context.Context, conn *clientv3.Client) error {
		_, err := conn.Delete(ctx, recordKey(table, ""), clientv3.WithRange(tableEnd(table)))
		return err
	})
}

var errRecord = errors.New("the value is not a record")

// defaultTable is YCSB's.
const defaultTable = "usertable"

// separator stands between a table's name and a key.
const separator = "/"

func recordKey(table, key string) string {
	if table == "" {
		table = defaultTable
	}
	return table + separator + key
}

func tableEnd(table string) string {
	if table == "" {
		table = defaultTable
	}
	return table + string(rune(separator[0]+1))
}

func keySuffix(full []byte, table string) string {
	if table == "" {
		table = defaultTable
	}
	return strings.TrimPrefix(string(full), table+separator)
}

// appendRecord appends a record's value: count { len(name) name len(value) value }.
func appendRecord(dst []byte, fields []load.Field) []byte {
	dst = varint.Append(dst, uint64(len(fields)))
	for _, f := range fields {
		dst = varint.AppendText(varint.AppendText(dst, f.Name), f.Value)
	}
	return dst
}

// decoder decodes records. It reuses the field names of the previous record.
type decoder struct{ names database.FieldNames }

func (d *decoder) fields(dst []load.Field, value []byte, wanted []string) ([]load.Field, error) {
	r := varint.NewReader(value)
	for i := range r.Count(2) { // the lengths of name and value
		name, text := r.Bytes(), r.Bytes()
		if r.Bad() {
			return dst, errRecord
		}
		if len(wanted) == 0 || containsText(wanted, name) {
			dst = append(dst, load.Field{Name: d.names.String(i, name), Value: text})
		}
	}
	if !r.Done() {
		return dst, errRecord
	}
	return dst, nil
}

func containsText(list []string, text []byte) bool {
	return slices.ContainsFunc(list, func(s string) bool { return s == string(text) })
}

func mergeFields(fields, values []load.Field) []load.Field {
	for _, v := range values {
		i := slices.IndexFunc(fields, func(f load.Field) bool { return f.Name == v.Name })
		if i < 0 {
			fields = append(fields, v)
		} else {
			fields[i].Value = v.Value
		}
	}
	return fields
}
