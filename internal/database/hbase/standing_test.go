package hbase

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"skerry/internal/load"
)

// TestStanding empties a cluster, so that its clients share a bridge that runs already. They
// do not see one another, go on after the table was emptied again, and have a bridge of their
// own where they ask for other settings, or the one that ran has ended.
func TestStanding(t *testing.T) {
	_, _, db := oneNode(t)
	c := db.(*cluster)
	ctx := t.Context()
	empty := func() {
		t.Helper()
		if err := c.Clear(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// opened is a client of a driver of its own.
	opened := func(more map[string]string) *client {
		t.Helper()
		p := c.Properties()
		maps.Copy(p, more)
		cl, err := New().Open(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cl.Close() })
		return cl.(*client)
	}
	works := func(who string, c *client) {
		t.Helper()
		if err := c.Insert(ctx, table, who, []load.Field{{Name: "field0", Value: []byte(who)}}); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		got, err := c.Read(ctx, table, who, nil, nil)
		if err != nil || len(got) != 1 || string(got[0].Value) != who {
			t.Fatalf("%s: %v, %v", who, got, err)
		}
	}

	own := opened(nil)
	works("before there is one", own)
	empty()
	at := c.Properties()[PropBridge]
	if !strings.HasSuffix(at, ":16040") {
		t.Fatalf("after the table was emptied a bridge stands at %q", at)
	}
	works("its own bridge, other regions", own)
	a, b := opened(nil), opened(nil)
	other := opened(map[string]string{PropTimeout: "5000"})
	works("a", a)
	works("b", b)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	works("b after a was closed", b)
	empty()
	again := opened(nil)
	works("again", again)
	if n := again.Retries(); n != 0 {
		t.Errorf("%d attempts went to regions that are no more", n)
	}

	if err := c.sharedBridge.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(ctx, table, "b", nil, nil); !errors.Is(err, errBridge) {
		t.Errorf("a client of a bridge that has ended: %v", err)
	}
	works("other settings", other)
	works("where none stands any more", opened(map[string]string{PropBridge: at}))
	if at := c.Properties()[PropBridge]; at != "" {
		t.Errorf("a bridge that has ended is told to stand at %s", at)
	}
	empty()
	works("anew", opened(nil))
	if at := c.Properties()[PropBridge]; at == "" {
		t.Error("no bridge stands after the table was emptied again")
	}
}
