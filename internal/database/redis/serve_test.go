package redis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

// Members repeatedly leave and join while clients read and write: no operation fails.
func TestNoOperationFailsDuringChanges(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes, nil)
	work := count(t, d, c, 4, 400)
	for round := range 2 {
		node := nodes[round%len(nodes)]
		if _, err := c.Leave(t.Context(), node, database.Graceful); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Join(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	work.check(t, open(t, d, c.Properties()))
	if work.failed > 0 {
		t.Errorf("%d operations failed", work.failed)
	}
}

// The claim on slots arrives in pieces, as over a link with a long round trip: clients of the slots are not affected.
func TestClaimOverSlowLink(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 3)
	c := startCluster(t, d, nodes, nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	const rows = 200
	for i := range rows {
		if err := client.Insert(ctx, "t", fmt.Sprint("user", i), record("x")); err != nil {
			t.Fatal(err)
		}
	}
	views, err := c.masterViews(ctx)
	if err != nil {
		t.Fatal(err)
	}
	src, err := c.openSource(ctx, views[0])
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	target := slowClient(views[1])
	defer target.Close()
	s := &stream{source: src, to: views[1], target: target, bytes: new(atomic.Int64), atOnce: c.kind.claimsAtOnce(views[1])}
	s.pace.setRoundTrip(0)
	var mine []string
	var full []int // slots with records
	for i := range rows {
		key := fmt.Sprint("user", i)
		n := slotOf(key)
		if n >= slots/3 {
			continue
		}
		if mine = append(mine, key); !slices.Contains(full, n) {
			full = append(full, n)
		}
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		reader := open(t, d, c.Properties())
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := reader.Read(ctx, "t", mine[i%len(mine)], nil, nil); err != nil {
					t.Errorf("reading %s: %v", mine[i%len(mine)], err)
					return
				}
			}
		})
	}
	err = s.moveSlots(ctx, full)
	close(stop)
	readers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	awaitSettled(t, c)
}

// slowClient is a client of a member whose requests arrive in small pieces.
func slowClient(v view) *goredis.Client {
	o := v.clientOptions(v.host, linkTimeout)
	dial := host.Dialer(v.host, linkTimeout)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return dribble{conn}, nil
	}
	return goredis.NewClient(o)
}

// dribble is a connection that sends a few bytes at a time.
type dribble struct{ net.Conn }

func (d dribble) Write(b []byte) (n int, err error) {
	const piece = 150
	for n < len(b) && err == nil {
		var k int
		k, err = d.Conn.Write(b[n:min(len(b), n+piece)])
		n += k
		time.Sleep(2 * time.Millisecond)
	}
	return n, err
}
