package database

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// The shortest connection time counts: a long one on a busy machine has no meaning.
func TestNearest(t *testing.T) {
	var near atomic.Int32
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		wait := 500 * time.Millisecond
		switch addr {
		case "gone:1":
			return nil, errors.New("refused")
		case "near:1":
			if near.Add(1) > 1 { // the first connection takes longer than those to the far address
				wait = 0
			} else {
				wait = 700 * time.Millisecond
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		conn, other := net.Pipe()
		return conn, other.Close()
	}
	got := SortByDistance(t.Context(), dial, []string{"gone:1", "far:1", "near:1"})
	if want := []string{"near:1", "far:1", "gone:1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if one := []string{"gone:1"}; !slices.Equal(SortByDistance(t.Context(), dial, one), one) {
		t.Error("a single address")
	}
}
