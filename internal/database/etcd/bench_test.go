package etcd

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit/testhost"
)

func kilobyte() []load.Field {
	var f []load.Field
	for i := range 10 {
		f = append(f, load.Field{Name: fmt.Sprint("field", i), Value: bytes.Repeat([]byte{'x'}, 100)})
	}
	return f
}

// BenchmarkEncodings compares the cost of a record of 1 kB in one key and in one key per field, on three local members,
// where a round trip costs nothing. Over links, the number of requests that cross them counts (see the package
// comment).
func BenchmarkEncodings(b *testing.B) {
	d := New()
	c := startCluster(b, d, testhost.Loopback(b, 3), nil)
	ctx := b.Context()
	one := open(b, d, c.Properties())
	raw := one.conns[0]
	record := kilobyte()
	const records = 100
	for n := range records {
		key := fmt.Sprintf("user%03d", n)
		if err := one.Insert(ctx, "", key, record); err != nil {
			b.Fatal(err)
		}
		var puts []clientv3.Op
		for _, f := range record {
			puts = append(puts, clientv3.OpPut("fields/"+key+"/"+f.Name, string(f.Value)))
		}
		if _, err := raw.Txn(ctx).Then(puts...).Commit(); err != nil {
			b.Fatal(err)
		}
	}
	key := func(i int) string { return fmt.Sprintf("user%03d", i%records) }
	run := func(name string, op func(i int) error) {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				if err := op(i); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
	run("record/read", func(i int) error { _, err := one.Read(ctx, "", key(i), nil, nil); return err })
	run("field/read", func(i int) error {
		_, err := raw.Get(ctx, "fields/"+key(i)+"/", clientv3.WithPrefix())
		return err
	})
	run("record/update", func(i int) error { return one.Update(ctx, "", key(i), record[:1]) })
	run("field/update", func(i int) error {
		_, err := raw.Put(ctx, "fields/"+key(i)+"/field0", string(record[0].Value))
		return err
	})
	run("record/scan50", func(int) error { _, err := one.Scan(ctx, "", "user020", 50, nil, nil); return err })
	run("field/scan50", func(int) error {
		_, err := raw.Get(ctx, "fields/user020", clientv3.WithRange("fields0"), clientv3.WithLimit(500))
		return err
	})
}

// BenchmarkClient compares the client's reads with a loop over etcd's client.
func BenchmarkClient(b *testing.B) {
	d := New()
	c := startCluster(b, d, testhost.Loopback(b, 1), nil)
	one := open(b, d, c.Properties())
	if err := one.Insert(b.Context(), "", "user1", kilobyte()); err != nil {
		b.Fatal(err)
	}
	var dst []load.Field
	b.Run("skerry", func(b *testing.B) {
		dbtest.CPU(b, func(ctx context.Context) (err error) {
			dst, err = one.Read(ctx, "", "user1", nil, dst[:0])
			return err
		})
	})
	b.Run("clientv3", func(b *testing.B) {
		dbtest.CPU(b, func(ctx context.Context) error {
			_, err := one.conns[0].Get(ctx, "usertable/user1")
			return err
		})
	})
}
