package hydra

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"skerry/internal/load"
	"skerry/systems/hydra/hydraclient"
)

func TestPool(t *testing.T) {
	var p pool
	near, far := hydraclient.Config{Endpoints: []string{"127.0.0.1:1", "127.0.0.1:2"}}, hydraclient.Config{Endpoints: []string{"127.0.0.1:2", "127.0.0.1:1"}}
	take := func(c hydraclient.Config, share int) *shared {
		t.Helper()
		s, err := p.take(c, share)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second, third, other, alone := take(near, 2), take(near, 2), take(near, 2), take(far, 2), take(near, 0)
	if first != second || first == third || first == other || third == other || alone == first || alone == third {
		t.Error("two workers share a client of the same endpoints in the same order, and no more")
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	if again := take(near, 2); again != first {
		t.Error("a place that was given back is not taken")
	}
	for _, s := range []*shared{first, second, third, other, alone} {
		if err := s.release(); err != nil {
			t.Error(err)
		}
	}
	if len(p.clients) != 0 {
		t.Errorf("%d clients are left that nobody has", len(p.clients))
	}
	if _, err := p.take(hydraclient.Config{}, 2); err == nil {
		t.Error("a client of nothing was made")
	}
}

// A member that takes a stream's request and ends leaves a write unknown; one that takes no
// connection has not done it.
func TestOutcomesOverStreams(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			read(c) // the upgrade
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hydra-stream/1\r\n\r\n")
			read(c) // a frame
			c.Close()
		}
	}()
	var p pool
	w, err := newWorker(settings{endpoints: []string{l.Addr().String()}, share: 10, timeout: 30 * time.Second}, nil, &p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, values := context.Background(), []load.Field{{Name: "a", Value: []byte("b")}}
	var e *load.OpError
	if err := w.Update(ctx, "", "k", values); !errors.As(err, &e) || e.Outcome != load.InDoubt {
		t.Errorf("a write whose stream ended: %v", err)
	}
	l.Close()
	<-served
	if err := w.Insert(ctx, "", "k", values); !errors.As(err, &e) || e.Outcome != load.NotDone || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a write that found nobody: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// read takes what comes once.
func read(c net.Conn) {
	_, _ = c.Read(make([]byte, 4096)) // what has ended shows when it is answered
}
