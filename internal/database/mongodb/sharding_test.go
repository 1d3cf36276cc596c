package mongodb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

func TestCheckBalanced(t *testing.T) {
	c, seen := talk(t, documented(t, "balancerCollectionStatus"), documented(t, "balancerCollectionStatus compliant"))
	if err := checkBalanced(t.Context(), c); !errors.Is(err, database.ErrNotReady) || !strings.Contains(err.Error(), "chunksImbalance") {
		t.Errorf("chunks to be moved: %v", err)
	}
	if err := checkBalanced(t.Context(), c); err != nil {
		t.Error(err)
	}
	expect(t, seen, `admin {"balancerCollectionStatus":"ycsb.usertable"}`, `admin {"balancerCollectionStatus":"ycsb.usertable"}`)
}

// MongoDB 4.2 has no command for this check.
func TestCheckBalancedBefore44(t *testing.T) {
	chunks := func(of ...bson.D) bson.D {
		return done(bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "config.chunks"}, {Key: "firstBatch", Value: of}}})
	}
	on := func(shard string, n int) bson.D { return bson.D{{Key: "_id", Value: shard}, {Key: "n", Value: n}} }
	missing := serverError(codeCommandNotFound, "CommandNotFound", "no such command: 'balancerCollectionStatus'")
	c, seen := talk(t, missing, documented(t, "listShards"), chunks(on("shard01", 4), on("shard02", 4)),
		missing, documented(t, "listShards"), chunks(on("shard01", 3), on("shard02", 3), on("shard03", 2)))
	if err := checkBalanced(t.Context(), c); !errors.Is(err, database.ErrNotReady) || !strings.Contains(err.Error(), "[4 4 0]") {
		t.Errorf("chunks to be moved: %v", err)
	}
	if err := checkBalanced(t.Context(), c); err != nil {
		t.Error(err)
	}
	if got := seen(); len(got) != 6 || !strings.HasPrefix(got[2], `config {"aggregate":"chunks","pipeline":[{"$match":{"ns":"ycsb.usertable"}}`) {
		t.Errorf("commands %q", got)
	}
}

func TestIsEven(t *testing.T) {
	for _, test := range []struct {
		chunks []int
		want   bool
	}{
		{nil, true},
		{[]int{0, 0}, true},
		{[]int{2, 2, 2, 0}, true}, // the mean of 1.5 is rounded up: the new shard stays empty
		{[]int{4, 4, 0}, false},
		{[]int{3, 3, 2}, true},
		{[]int{3, 1, 1, 1, 1, 1, 1, 1}, true}, // rounded down: no shard has less
		{[]int{3, 1, 0, 1, 1, 1, 1, 1}, false},
	} {
		if got := isEven(test.chunks); got != test.want {
			t.Errorf("%v: %v, want %v", test.chunks, got, test.want)
		}
	}
}

// The copies of each node of a sharded cluster are read: every record is on as many nodes as its shard has members, and
// both shards have records.
func TestCopiesOfShards(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	const rows, shards, replicas = 200, 2, 2
	db := New()
	nodes := testhost.Loopback(t, 3)
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
			t.Errorf("a write through a member's own copy: %v", err)
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
