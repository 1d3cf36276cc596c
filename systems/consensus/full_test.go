package consensus_test

import (
	"errors"
	"sync"
	"testing"

	"skerry/systems/consensus"
)

// TestLogStaysBelowItsBound proposes as fast as possible while no consumer applies entries.
func TestLogStaysBelowItsBound(t *testing.T) {
	const most = 2 << 20
	self := consensus.Member{ID: 1, Name: "m1", Site: "s", Role: consensus.Voter}
	n, err := consensus.Open(t.Context(), consensus.Config{
		Cluster: "test", Self: self, Members: []consensus.Member{self}, Dir: t.TempDir(), Listener: listen(t), MaxLog: most,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	ctx := soon(t)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 10 * most / (64 * 4096) {
				switch _, err := n.Propose(ctx, make([]byte, 4096)); {
				case errors.Is(err, consensus.ErrLogFull):
					return
				case err != nil:
					t.Error(err)
					return
				}
			}
			t.Error("the log accepted ten times its bound")
		})
	}
	all.Wait()
	if got := n.Status().LogBytes; got > most || got < most/2 {
		t.Errorf("the log has %d bytes, want at most %d", got, most)
	}
}
