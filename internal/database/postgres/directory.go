package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// lookEvery is how often the members are asked for.
const lookEvery = 5 * time.Second

// directory is the list of members that clients of the same settings share: one
// goroutine keeps asking the primary for it, over a connection of its own, so that a client
// whose primary leaves finds members that were not there when it was opened.
type directory struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	addrs []string
}

// openDirectory starts a directory, which outlives the context of the worker that opens it.
func openDirectory(ctx context.Context, s settings) *directory {
	dir := &directory{addrs: strings.Split(s.hosts, ",")}
	ctx, dir.cancel = context.WithCancel(context.WithoutCancel(ctx))
	dir.ended.Go(func() { dir.refresh(ctx, s) })
	return dir
}

// close stops the directory's goroutine and waits for its end.
func (dir *directory) close() error {
	dir.cancel()
	dir.ended.Wait()
	return nil
}

// members are the addresses that are known.
func (dir *directory) members() []string {
	dir.mu.Lock()
	defer dir.mu.Unlock()
	return slices.Clone(dir.addrs)
}

// refresh asks until it is told to end.
func (dir *directory) refresh(ctx context.Context, s settings) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		dir.lookup(ctx, s)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookup asks the first primary that it finds. Who does not answer is asked the next time.
func (dir *directory) lookup(ctx context.Context, s settings) {
	for _, addr := range dir.members() {
		got := queryDirectory(ctx, addr, s)
		if got.err != nil {
			continue
		}
		if !got.standby {
			known, err := directoryOf(ctx, got.conn, dir.members())
			abandon(got.conn)
			if err == nil {
				dir.mu.Lock()
				dir.addrs = known
				dir.mu.Unlock()
			}
			return
		}
		abandon(got.conn)
	}
}
