package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"skerry/internal/base/progress"
	"skerry/internal/record"
)

// abroad writes the claim of a controller on another machine.
func abroad(t *testing.T, dir string, beat int) {
	t.Helper()
	text, err := json.Marshal(claimOwner{Host: "login2", Process: 7, Boot: "another", Token: "another", Beat: beat})
	if err == nil {
		err = os.WriteFile(claimPath(dir), text, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// interrupted is a run with nothing measured.
func interrupted(t *testing.T) (string, Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config(t)
	cfg.beat = time.Millisecond
	cfg.Progress = progress.New(said(func(string) { cancel() }), func() int { return 0 })
	dir, err := Run(ctx, cfg)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := os.Stat(claimPath(dir)); err == nil {
		t.Error("the claim of a finished controller still exists")
	}
	cfg.Progress = progress.New(io.Discard, nil)
	return dir, cfg
}

// A controller on another machine, whose lock is not visible here, keeps its run while it is alive.
func TestControllerOnAnotherMachine(t *testing.T) {
	newCluster(t, 4)
	dir, cfg := interrupted(t)
	before, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	abroad(t, dir, 0)
	beat := 0
	cfg.Progress = progress.New(said(func(string) { beat++; abroad(t, dir, beat) }), func() int { return 0 })
	if err := Resume(t.Context(), dir, cfg); !errors.Is(err, record.ErrBusy) {
		t.Fatalf("resuming while the other controller is alive: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "run.json")); err != nil || string(after) != string(before) {
		t.Errorf("run.json was written (%v)", err)
	}
	cfg.Progress = progress.New(io.Discard, nil) // now the controller counts as dead
	if err := Resume(t.Context(), dir, cfg); err != nil {
		t.Fatal(err)
	}
	check(t, dir, 4)
}

// A controller that was considered dead and finds its run taken over ends and writes nothing more.
func TestSupersededController(t *testing.T) {
	newCluster(t, -1)
	dir, cfg := interrupted(t)
	ended := make(chan struct{})
	var other sync.WaitGroup
	var takes sync.Once
	cfg.Progress = progress.New(said(func(string) {
		takes.Do(func() {
			other.Go(func() { // repeatedly, since the heartbeat of the old controller may have just read its own claim
				for beat := 0; ; beat++ {
					select {
					case <-ended:
						return
					case <-time.After(time.Millisecond):
						abroad(t, dir, beat)
					}
				}
			})
		})
	}), func() int { return 0 })
	err := Resume(t.Context(), dir, cfg)
	close(ended)
	other.Wait()
	if !errors.Is(err, errSuperseded) {
		t.Fatalf("%v", err)
	}
	d, err := record.Open(dir)
	if err != nil || !d.Run.Finished.IsZero() {
		t.Errorf("run.json reports the run as finished (%v)", err)
	}
	if text, err := os.ReadFile(claimPath(dir)); err != nil || len(text) == 0 {
		t.Errorf("the claim of the other controller is missing: %v", err)
	}
}
