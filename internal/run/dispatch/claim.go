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
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/kernel/procfs"
	"skerry/internal/record"
	"skerry/internal/run/executor"
)

// claim is a file in the run directory that names the run's controller. The lock on the directory only
// excludes processes of the same machine:
//
//  1. Controller A writes its claim, and changes it at every beat.
//  2. Controller B on another machine reads the claim and sees it change. B ends without writing anything.
//     Only changes count, so clocks may differ.
//  3. A is killed, or cut off from the file system. B sees no change and writes its own claim.
//  4. A resumes, finds B's claim at its next beat, and ends without another write to run.json, summary.json
//     or state.json. Tasks that A submitted meanwhile have one result each, as all tasks.
type claim struct {
	path  string
	owner claimOwner

	stop  context.CancelFunc
	beats sync.WaitGroup
}

// claimOwner is the content of the file. It is written in place because network file systems may show a
// replaced file late.
type claimOwner struct {
	Host    string `json:"host"`
	Process int    `json:"process"`
	Boot    string `json:"boot"` // boot ID of the machine; its own processes use the lock
	Token   string `json:"token"`
	Beat    int    `json:"beat"`
}

const (
	// claimBeat is how often a claim changes.
	claimBeat = 3 * time.Second
	// watchBeats is the number of beats after which an unchanged claim is abandoned.
	watchBeats = 5
)

// errSuperseded ends a run whose claim another machine has taken.
var errSuperseded = errors.New("another machine controls the run now")

func claimPath(dir string) string { return filepath.Join(dir, executor.Folder, "controller") }

// checkVacant watches the claim of another machine. It returns record.ErrBusy if the claim changes. notify
// is called before the wait.
func checkVacant(ctx context.Context, dir string, beat time.Duration, notify func(claimOwner)) error {
	was, err := os.ReadFile(claimPath(dir))
	boot, _ := procfs.BootID() // "" if the kernel does not report it
	var o claimOwner
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(was, &o) == nil && o.Boot == boot {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the run's controller: %w", err)
	}
	notify(o)
	for range watchBeats {
		if err := linger.For(ctx, beat); err != nil {
			return err
		}
		now, err := os.ReadFile(claimPath(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the run's controller: %w", err)
		}
		if string(now) != string(was) {
			return advice.With(fmt.Errorf("%w: process %d on %s", record.ErrBusy, o.Process, o.Host), "follow the run: skerry run --follow %s", dir)
		}
	}
	return nil
}

// acquireClaim writes a claim and renews it until close. lost is called if another machine's claim appears.
func acquireClaim(dir string, beat time.Duration, gone func(error)) (*claim, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read host name: %w", err)
	}
	boot, _ := procfs.BootID()
	c := &claim{path: claimPath(dir), owner: claimOwner{Host: host, Process: os.Getpid(), Boot: boot, Token: rand.Text()}}
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

// renew changes the claim while this process owns it. It ignores a file system that is temporarily
// unavailable, and a claim that is being written; the next beat reads it completely.
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
		return fmt.Errorf("write the run's controller: %w", err)
	}
	return nil
}

func (c *claim) close() error {
	c.stop()
	c.beats.Wait()
	if o, err := c.read(); err != nil || o.Token != c.owner.Token {
		return nil // owned or being written by another process
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the claim on the run: %w", err)
	}
	return nil
}
