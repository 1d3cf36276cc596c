package hbase

import (
	"context"
	"strconv"
	"testing"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// A server of a cluster without HDFS is killed. Its acknowledged writes are in its write-ahead log, to the last byte,
// and nowhere else.
func TestDirectory(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	d, ctx := New(), t.Context()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	nodes := testhost.Loopback(t, 2)
	c, err := d.Start(ctx, database.Env{Nodes: nodes, Control: nodes[0], Installation: in,
		Options: database.Options{"storage": "directory", "regions": 2, "zookeeper_session_timeout": "10s"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	client, err := d.Open(ctx, c.Properties())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const rows = 200
	key := func(i int) string { return "user" + strconv.Itoa(1000+i*9000/rows) }
	for i := range rows {
		if err := client.Insert(ctx, table, key(i), []load.Field{{Name: "field0", Value: []byte(key(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Halt(ctx, nodes[1], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(ctx, nodes[1]); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		got, err := client.Read(ctx, table, key(i), nil, nil)
		if err != nil || len(got) != 1 || string(got[0].Value) != key(i) {
			t.Errorf("%s: %v, %v", key(i), got, err)
		}
	}
	if n, err := c.Count(ctx); err != nil || n != rows {
		t.Errorf("count %d, %v", n, err)
	}
}
