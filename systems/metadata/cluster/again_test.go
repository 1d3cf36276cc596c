package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/cluster"
)

// TestRepeatedChange makes a router hang just before or just after the step that decides a change. Another router
// gets the same change and reports success. The change is made once, even if the first router resumes later.
func TestRepeatedChange(t *testing.T) {
	for _, line := range []string{
		"mkdir /b/new", "write -x /b/new text", "mv /b/e /b/new", "mv /f /b/new", "mv /b/d /new", "mv /b /new", "rm /f", "rm -r /b",
		"rmdir /b/e", "rmdir /c", "delegate /b g3", "delegate /b/e g3",
	} {
		for _, when := range []string{"before", "behind"} {
			t.Run(line+" "+when, func(t *testing.T) {
				t.Parallel()
				repeatChange(t, line, when == "before")
			})
		}
	}
}

const lateLease = 100 * time.Millisecond

func repeatChange(t *testing.T, line string, before bool) {
	w := newWorld(t)
	first, second := w.router(t, lateLease), w.router(t, lateLease)
	w.startKeepers(t, first)
	must(t, first, "mkdir /b", "delegate /b g2", "mkdir /b/d", "create /b/d/x", "mkdir /b/e", "write /f text", "mkdir /c", "delegate /c g3")
	c, err := metadata.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	c.Identity = "client/1.0"
	hung, release := make(chan struct{}), make(chan struct{})
	var hangs atomic.Bool
	for _, m := range w {
		m.set(false, func(early bool, commands []metadata.Command) bool {
			if early == before && decides(commands, c.Identity) && hangs.CompareAndSwap(false, true) {
				close(hung)
				<-release
			}
			return false
		})
	}
	late := make(chan metadata.Result, 1)
	go func() { late <- first.Do(t.Context(), []metadata.Command{c})[0] }()
	select {
	case <-hung:
	case got := <-late:
		t.Fatalf("no router reached the deciding step: %+v", got)
	}
	again := metadata.WithRequest(t.Context(), metadata.Request{Again: true})
	if got := second.Do(again, []metadata.Command{c})[0]; got.Err != nil {
		t.Errorf("repeating the change: %v", got.Err)
	}
	image := w.image(t)
	close(release)
	if got := <-late; got.Err != nil && !errors.Is(got.Err, metadata.ErrUnavailable) && !errors.Is(got.Err, metadata.ErrStale) {
		t.Logf("the first router returns: %v", got.Err) // no client reads it
	}
	if got := w.image(t); got != image {
		t.Errorf("after the first router resumed:\n%s\nbefore:\n%s", got, image)
	}
	if got := second.Do(again, []metadata.Command{c})[0]; got.Err != nil {
		t.Errorf("repeating the change a third time: %v", got.Err)
	}
}

// decides reports whether commands contain the deciding step of a change.
func decides(commands []metadata.Command, identity string) bool {
	for _, c := range commands {
		if metadata.OriginalIdentity(c.Identity) == identity {
			return true
		}
	}
	return false
}

// startKeepers runs the keeper of every server until the test ends.
func (w world) startKeepers(t *testing.T, r *cluster.Router) {
	ctx, cancel := context.WithCancel(context.Background())
	var keepers sync.WaitGroup
	for name, m := range w {
		keepers.Go(func() { r.RunKeeper(ctx, name, m.store(), slog.New(slog.DiscardHandler)) })
	}
	t.Cleanup(func() { cancel(); keepers.Wait() })
}
