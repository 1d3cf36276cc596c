package hydra

import (
	"encoding/json"
	"strings"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// markup is a row of the largest size, of characters that package json writes as six bytes.
func markup() json.RawMessage {
	const around = len(`{"v":""}`)
	return json.RawMessage(`{"v":"` + strings.Repeat("<&>\u2028", (command.MaxValue-around)/6) + `"}`)
}

// TestBytesOfARow writes rows of the largest size in every way, where the cloud's own database
// answers and where another cloud's does: they come back byte for byte.
func TestBytesOfARow(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b knows a", func() bool { _, ok := b.other(); return ok })
	if _, err := operated(t, b.path).ExecContext(ctx, "ALTER TABLE hydra_meta RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(ctx, "t", "k", map[string]int{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b does not serve", func() bool { return b.troubled() != nil })
	streams, err := hydraclient.New(hydraclient.Config{Endpoints: []string{strings.TrimPrefix(b.url, "http://")}, Timeout: patience, Streams: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	for name, c := range map[string]*hydraclient.Client{"own": a.client, "other": b.client, "stream": streams} {
		t.Run(name, func(t *testing.T) {
			want := markup()
			check := func(how, key string) {
				t.Helper()
				for _, by := range []*hydraclient.Client{a.client, c} {
					if row, err := by.Get(ctx, "t", key); err != nil || string(row.Value) != string(want) {
						t.Errorf("%s: %d bytes came back of %d, %v", how, len(row.Value), len(want), err)
					}
				}
			}
			if _, err := c.Put(ctx, "t", "<put>"+name, want, hydraclient.RequestID("put"+name)); err != nil {
				t.Errorf("a put: %v", err)
			}
			check("put", "<put>"+name)
			if _, err := c.Put(ctx, "t", "once"+name, want, hydraclient.IfAbsent()); err != nil {
				t.Errorf("a put that is conditional: %v", err)
			}
			check("conditional put", "once"+name)
			var all api.Transaction
			keys := []string{"x", "y", "z"}
			for _, k := range keys {
				all.Writes = append(all.Writes, api.Write{Do: command.Put, Table: "t", Key: k + name, Value: want})
			}
			if _, err := c.Transact(ctx, all, hydraclient.RequestID("transaction"+name)); err != nil {
				t.Errorf("a transaction of 3 MiB: %v", err)
			}
			for _, k := range keys {
				check("transaction", k+name)
			}
		})
	}
	type page struct{ V string }
	if _, err := a.client.Put(ctx, "t", "struct", page{"a<b"}); err != nil {
		t.Fatal(err)
	}
	if row, err := a.client.Get(ctx, "t", "struct"); err != nil || string(row.Value) != `{"V":"a<b"}` {
		t.Errorf("what the client made JSON of: %s, %v", row.Value, err)
	}
}
