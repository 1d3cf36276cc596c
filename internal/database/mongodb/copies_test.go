package mongodb

import (
	"errors"
	"fmt"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
	"skerry/internal/load"
	"skerry/internal/testkit"
	"skerry/internal/testkit/loophost"
)

// TestCopiesOfShards reads each node's own copies of a sharded cluster: every record is on as many nodes as its
// shard has members, and both shards have some.
func TestCopiesOfShards(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	const rows, shards, replicas = 200, 2, 2
	db := New()
	nodes := loophost.New(t, 3)
	c := dbtest.Start(t, db, database.Env{Nodes: nodes, Options: database.Options{
		"topology": "sharded", "shards": shards, "replicas": replicas, "config_servers": 1, "mongos": "n1", "write_concern": replicas,
	}}).(*cluster)
	ctx := t.Context()
	client, err := db.Open(ctx, c.Properties())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := func(i int) string { return fmt.Sprint("user", i) }
	for i := range rows {
		if err := client.Insert(ctx, "", key(i), []load.Field{{Name: "field0", Value: []byte{byte(i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	held, scanned := make(map[string]int), 0
	by := make(map[string]bool)
	for _, n := range nodes {
		copies, err := c.OpenMember(ctx, n.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer copies.Close()
		for i := range rows {
			fields, err := copies.Read(ctx, "", key(i), nil, nil)
			switch {
			case errors.Is(err, load.ErrNotHeld):
			case err != nil || len(fields) != 1 || fields[0].Value[0] != byte(i):
				t.Errorf("%s on %s: %v, %v", key(i), n.Name(), fields, err)
			default:
				held[key(i)]++
				by[copies.(*shardCopies).findShard(key(i))] = true
			}
		}
		seen, err := copies.Scan(ctx, "", "", rows, nil, nil)
		if err != nil {
			t.Error(err)
		}
		scanned += seen
		if err := copies.Delete(ctx, "", key(0)); !errors.Is(err, load.ErrUnsupported) {
			t.Errorf("a copy was written: %v", err)
		}
	}
	for i := range rows {
		if held[key(i)] != replicas {
			t.Errorf("%s is on %d nodes, want %d", key(i), held[key(i)], replicas)
		}
	}
	if scanned != replicas*rows || len(by) != shards {
		t.Errorf("%d records were scanned, on shards %v", scanned, by)
	}
}
