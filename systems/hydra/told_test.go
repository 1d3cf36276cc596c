package hydra

import (
	"fmt"
	"testing"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// TestToldOfProgress has a member that does not apply never look by itself: who applies tells it,
// so that writes and reads there are answered.
func TestToldOfProgress(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	never := func(o *Options) { o.pace = pace{time.Hour, time.Hour} }
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	b := startMember(t, shared, "b", "east", a.path, nil, never)
	for i := range 30 {
		if _, err := b.client.Put(ctx, "t", fmt.Sprint(i), map[string]int{"n": i}, hydraclient.Ack(api.Applied)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.client.Put(ctx, "t", fmt.Sprint("a", i), map[string]int{"n": i}, hydraclient.Ack(api.Applied)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.Get(ctx, "t", fmt.Sprint("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	if b.lead.Load() {
		t.Error("the member applies")
	}
}
