package database

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// pooledClient is a client that only has a name.
type pooledClient struct{ name string }

// clientLog records the clients that a source opens and closes.
type clientLog struct{ opened, closed []string }

func (l *clientLog) source(name string, maxWorkers int) ClientSource[*pooledClient] {
	return ClientSource[*pooledClient]{
		Open: func(context.Context) (*pooledClient, error) {
			l.opened = append(l.opened, name)
			return &pooledClient{name}, nil
		},
		Close: func(c *pooledClient) error {
			l.closed = append(l.closed, c.name)
			return nil
		},
		MaxWorkers: maxWorkers,
	}
}

func TestClientPoolSharesEqualKeys(t *testing.T) {
	tests := map[string]struct {
		keys   []string
		max    int
		opened []string
	}{
		"equal keys":     {keys: []string{"a", "a", "a"}, opened: []string{"a"}},
		"different keys": {keys: []string{"a", "b", "a"}, opened: []string{"a", "b"}},
		"limit":          {keys: []string{"a", "a", "a"}, max: 2, opened: []string{"a", "a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var pool ClientPool[string, *pooledClient]
			var log clientLog
			var releases []func() error
			for _, key := range test.keys {
				_, release, err := pool.Acquire(t.Context(), key, log.source(key, test.max))
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
			if !slices.Equal(log.opened, test.opened) {
				t.Errorf("opened %q, want %q", log.opened, test.opened)
			}
			for _, release := range releases {
				if err := errors.Join(release(), release()); err != nil {
					t.Error(err)
				}
			}
			slices.Sort(log.closed)
			if !slices.Equal(log.closed, test.opened) || len(pool.clients) != 0 {
				t.Errorf("closed %q, %d keys left", log.closed, len(pool.clients))
			}
		})
	}
}

func TestClientPoolRefillsReleasedPlace(t *testing.T) {
	var pool ClientPool[string, *pooledClient]
	var log clientLog
	acquire := func() (*pooledClient, func() error) {
		t.Helper()
		client, release, err := pool.Acquire(t.Context(), "a", log.source("a", 2))
		if err != nil {
			t.Fatal(err)
		}
		return client, release
	}
	first, release := acquire()
	acquire()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if again, _ := acquire(); again != first {
		t.Error("the slot of a released worker stays empty")
	}
	if len(log.closed) > 0 {
		t.Error("a client in use was closed")
	}
}

func TestClientPoolReopensAfterFailure(t *testing.T) {
	var pool ClientPool[string, *pooledClient]
	var log clientLog
	errOpen := errors.New("no server")
	fail := ClientSource[*pooledClient]{Open: func(context.Context) (*pooledClient, error) { return nil, errOpen }}
	if _, _, err := pool.Acquire(t.Context(), "a", fail); !errors.Is(err, errOpen) {
		t.Errorf("error %v, want %v", err, errOpen)
	}
	if _, _, err := pool.Acquire(t.Context(), "a", log.source("a", 0)); err != nil || len(log.opened) != 1 {
		t.Errorf("error %v after a failed opening, opened %q", err, log.opened)
	}
}

// A worker that waits for a client is cancelled. The client stays for the worker that opens it.
func TestClientPoolCancelledWorker(t *testing.T) {
	var pool ClientPool[string, *pooledClient]
	var log clientLog
	source := log.source("a", 0)
	open := source.Open
	source.Open = func(ctx context.Context) (*pooledClient, error) {
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, _, err := pool.Acquire(cancelled, "a", log.source("a", 0)); !errors.Is(err, context.Canceled) {
			t.Errorf("the waiting worker got error %v, want %v", err, context.Canceled)
		}
		return open(ctx)
	}
	_, release, err := pool.Acquire(t.Context(), "a", source)
	if err != nil || len(log.closed) > 0 {
		t.Fatalf("error %v, closed %q", err, log.closed)
	}
	if err := release(); err != nil || len(log.closed) != 1 || len(pool.clients) != 0 {
		t.Errorf("error %v, closed %q, %d keys left", err, log.closed, len(pool.clients))
	}
}
