package dbtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/load"
)

// testExternal uses the servers of the cluster as one that Skerry did not start: its table is created and dropped, also
// by the next run after a killed one, and foreign rows are kept.
func (s *suite) testExternal(t *testing.T, cluster database.Cluster) {
	db, ok := s.db.(database.External)
	if !ok {
		t.Skip("the database's clients cannot use servers that Skerry did not start")
	}
	servers, properties := serversOf(db, cluster.Properties())
	foreign := s.openClient(t, cluster)
	if err := foreign.Insert(t.Context(), Table, "user-of-others", newRecord("user-of-others", "1")); err != nil {
		t.Fatal(err)
	}
	before, err := cluster.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	others := func() {
		t.Helper()
		if _, err := foreign.Read(t.Context(), Table, "user-of-others", nil, nil); err != nil {
			t.Errorf("the foreign record: %v", err)
		}
		if n, err := cluster.Count(t.Context()); err != nil || n != before {
			t.Errorf("the foreign table has %d records, want %d: %v", n, before, err)
		}
	}
	ext, err := external.New(db, external.ClusterSpec{Servers: servers, Properties: properties}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	start := func(name string) (*external.Scratch, database.Cluster) {
		t.Helper()
		scratch, err := external.NewScratch(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ext.Start(t.Context(), database.Env{Scratch: scratch.Dir()})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, ext, c)
		want := s.in.Version
		if db.Capabilities().UserClient { // its protocol has no question for the version
			want = external.UnknownVersion
		}
		if v := c.(*external.Cluster).Version(); want == "" || !strings.Contains(v, want) {
			t.Errorf("the servers report version %q, want %q", v, want)
		}
		return scratch, c
	}

	scratch, c := start("ended")
	if err := c.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, ext, c) // the next client creates the table again
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := scratch.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	dropped(t, db, c)
	others()

	scratch, c = start("killed")
	if err := scratch.Release(t.Context()); err != nil { // as the kernel does when the process exits
		t.Fatal(err)
	}
	swept, err := external.Sweep(t.Context(), root, map[string]database.Database{db.Name(): db})
	if err != nil || len(swept) != 1 || swept[0] != "dropped the tables of a killed run: "+c.Properties()[database.PropTable] {
		t.Errorf("Sweep dropped %v, want the table of %v: %v", swept, c.Properties(), err)
	}
	dropped(t, db, c)
	others()
	if err := foreign.Delete(t.Context(), Table, "user-of-others"); err != nil {
		t.Error(err)
	}
}

const (
	// externalRows is the number of records in the table.
	externalRows = 30
	countTimeout = time.Minute
)

// fill inserts records in the table of an external cluster, and counts them.
func fill(t *testing.T, db database.Database, c database.Cluster) {
	t.Helper()
	client, err := db.Open(t.Context(), c.Properties())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table := c.Properties()[database.PropTable]
	for i := range externalRows {
		key := "user" + strings.Repeat("x", i+1)
		if err := client.Insert(t.Context(), table, key, newRecord(key, "1")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Read(t.Context(), table, "userx", nil, nil); err != nil {
		t.Error(err)
	}
	// A member without causal reads counts the writes of other members once it has applied them.
	ctx, cancel := context.WithTimeout(t.Context(), countTimeout)
	defer cancel()
	n, err := c.Count(ctx)
	for err == nil && n < externalRows && linger.For(ctx, 20*time.Millisecond) == nil {
		n, err = c.Count(ctx)
	}
	if err != nil || n != externalRows {
		t.Errorf("the table has %d records, want %d: %v", n, externalRows, err)
	}
}

// dropped checks that the table was dropped: a new table of the same name is empty.
func dropped(t *testing.T, db database.External, c database.Cluster) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	n, err := database.CountTable(ctx, db, c.Properties())
	if err != nil && !strings.Contains(err.Error(), load.ErrNotFound.Error()) || n != 0 {
		t.Errorf("%d records are left: %v", n, err)
	}
	if err := database.DropTable(ctx, db, c.Properties()); err != nil { // counting may have created it
		t.Error(err)
	}
}

// serversOf returns the servers in the properties of a cluster, and the other properties.
func serversOf(db database.External, properties map[string]string) (servers []string, rest map[string]string) {
	const mark = "mark:1"
	rest = map[string]string{}
	for name, value := range properties {
		pattern, is := db.ServerProperties([]string{mark}, "t")[name]
		if !is || !strings.Contains(pattern, mark) {
			rest[name] = value
			continue
		}
		head, _, _ := strings.Cut(pattern, mark)
		value, _, _ = strings.Cut(strings.TrimPrefix(value, head), "/")
		servers = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return servers, rest
}
