package link

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// halvesOf are both halves of a link between two nodes of this machine.
func halvesOf(id, a, b string) (Half, Half) {
	at, peer := Endpoint{Node: a, Device: id}, Endpoint{Node: b, Device: id}
	return Half{Link: id, Endpoint: at, Peer: peer, Seed: 7, Sends: Quality{Latency: time.Millisecond}},
		Half{Link: id, Endpoint: peer, Peer: at, Seed: 7}
}

func TestJoin(t *testing.T) {
	xa, xb := halvesOf("x", "a", "b")
	ya, yb := halvesOf("y", "a", "c")
	far, _ := halvesOf("z", "a", "d")
	far.Peer.Machine = "rack-2"
	pairs, alone, err := PairHalves([]Half{xa, ya, far, yb, xb})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Pair{{xa, xb}, {ya, yb}}, pairs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Half{far}, alone); diff != "" {
		t.Error(diff)
	}
}

func TestJoinRefuses(t *testing.T) {
	a, b := halvesOf("x", "a", "b")
	stranger, seeded := b, b
	stranger.Node, seeded.Seed = "c", 8
	for name, halves := range map[string][]Half{
		"three halves": {a, b, b}, "twice the same": {a, a}, "another peer": {a, stranger}, "another seed": {a, seeded},
	} {
		if _, _, err := PairHalves(halves); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}
