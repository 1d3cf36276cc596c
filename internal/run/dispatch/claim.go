package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/record"
	"skerry/internal/run/executor"
)

// claim says in a file of the run directory who takes care of the run. The lock on the directory keeps two
// processes of one machine apart, and over a network file system it keeps nobody apart:
//
//  1. Controller A writes its claim, and changes it at every beat.
//  2. Controller B on another machine finds it, watches for some beats and sees it change: B ends, and has written nothing.
//     Only that it changes counts, so clocks may differ.
//  3. A is killed, or cut off from the file system. B sees no change, and puts its own claim there.
//  4. A comes back, finds the claim of B at its next beat, and ends without another write to run.json,
//     summary.json or state.json. What it handed over meanwhile has, as all tasks do, one result each.
type claim struct {
	path  string
	owner claimOwner

	stop  context.CancelFunc
	beats sync.WaitGroup
}

// claimOwner is what the file holds. It is written in place, so that network file systems show it to
// who opens it.
type claimOwner struct {
	Host    string `json:"host"`
	Process int    `json:"process"`
	Boot    string `json:"boot"` // of the machine: its own processes are told apart by the lock
	Token   string `json:"token"`
	Beat    int    `json:"beat"`
}

const (
	// claimBeat is how often a claim changes, watchBeats for how many of them a change is waited for.
	claimBeat  = 3 * time.Second
	watchBeats = 5
)

// errSuperseded is why a sweep ends whose run another machine takes care of now.
var errSuperseded = errors.New("another machine has taken the run over")

func claimPath(dir string) string { return filepath.Join(dir, executor.Folder, "controller") }

// checkVacant watches a claim of another machine: record.ErrBusy says that somebody is there.
func checkVacant(ctx context.Context, dir string, beat time.Duration, tell func(claimOwner)) error {
	was, err := os.ReadFile(claimPath(dir))
	var o claimOwner
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(was, &o) == nil && o.Boot == bootID() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading who takes care of the run: %w", err)
	}
	tell(o)
	for range watchBeats {
		if err := linger.For(ctx, beat); err != nil {
			return err
		}
		now, err := os.ReadFile(claimPath(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading who takes care of the run: %w", err)
		}
		if string(now) != string(was) {
			return advice.With(fmt.Errorf("%w: process %d on %s", record.ErrBusy, o.Process, o.Host), "follow it there: skerry run --follow %s", dir)
		}
	}
	return nil
}

// acquireClaim puts a claim into dir and renews it until it is given up; gone is called where another one's is found.
func acquireClaim(dir string, beat time.Duration, gone func(error)) (*claim, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("asking for this machine's name: %w", err)
	}
	c := &claim{path: claimPath(dir), owner: claimOwner{Host: host, Process: os.Getpid(), Boot: bootID(), Token: rand.Text()}}
	if err := c.write(); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	c.beats.Go(func() {
		for linger.For(ctx, beat) == nil {
			if err := c.renew(); err != nil {
				gone(err)
				return
			}
		}
	})
	return c, nil
}

// renew changes the claim while it is this process's. A file system that cannot be read or written for a
// while is no reason to end; nor is a claim that somebody is just writing, which the next beat sees whole.
func (c *claim) renew() error {
	o, err := c.read()
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && o.Token == c.owner.Token:
		c.owner.Beat++
		_ = c.write()
	case err == nil:
		return fmt.Errorf("%w: process %d on %s", errSuperseded, o.Process, o.Host)
	}
	return nil
}

// read is who holds the claim.
func (c *claim) read() (o claimOwner, err error) {
	text, err := os.ReadFile(c.path)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	return o, err
}

func (c *claim) write() error {
	text, err := json.Marshal(c.owner)
	if err == nil {
		err = os.WriteFile(c.path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("noting who takes care of the run: %w", err)
	}
	return nil
}

// close gives the claim up.
func (c *claim) close() error {
	c.stop()
	c.beats.Wait()
	if o, err := c.read(); err != nil || o.Token != c.owner.Token {
		return nil // another's, or just being written by another
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("giving the run up: %w", err)
	}
	return nil
}

// bootID is of this machine since it came up, "" where the kernel does not tell.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
