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

func TestPoolSharesClients(t *testing.T) {
	var p clientPool
	near := hydraclient.Config{Endpoints: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	far := hydraclient.Config{Endpoints: []string{"127.0.0.1:2", "127.0.0.1:1"}}
	acquire := func(c hydraclient.Config, share int) *hydraclient.Client {
		t.Helper()
		client, release, err := p.acquire(t.Context(), c, share)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := release(); err != nil {
				t.Error(err)
			}
		})
		return client
	}
	first, second, third, other, alone := acquire(near, 2), acquire(near, 2), acquire(near, 2), acquire(far, 2), acquire(near, 0)
	if first != second || first == third || first == other || third == other || alone == first || alone == third {
		t.Error("want one client for two workers of the same endpoints in the same order")
	}
	if _, _, err := p.acquire(t.Context(), hydraclient.Config{}, 2); err == nil {
		t.Error("a client without endpoints was opened")
	}
}

// If a member accepts a stream's request and ends, the write is unknown; if it refuses the connection, the write was
// not executed.
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
	var p clientPool
	w, err := newWorker(t.Context(), settings{endpoints: []string{l.Addr().String()}, share: 10, timeout: 30 * time.Second}, nil, &p)
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
		t.Errorf("a write without a reachable member: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// read reads once from the connection.
func read(c net.Conn) {
	_, _ = c.Read(make([]byte, 4096)) // an ended connection shows at the next write
}
