// Package daemon is one metadata server as a process: a directory's tree, served.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"skerry/internal/advice"
	"skerry/internal/metadata/journal"
	"skerry/internal/metadata/server"
	"skerry/internal/metadata/store"
)

// Options are what a server needs.
type Options struct {
	Listen  string // address: "127.0.0.1:8080"
	Dir     string // of the journal
	Journal journal.Options
	Server  server.Options
	Log     *slog.Logger
	// Ready is called once the server takes connections, with its address and what was
	// recovered; its error ends the server.
	Ready func(addr net.Addr, r journal.Recovery) error
}

// Run serves until the context ends.
func Run(ctx context.Context, o Options) (err error) {
	state := store.NewState()
	start := time.Now()
	o.Journal.Log, o.Server.Log = o.Log, o.Log
	j, recovery, err := journal.Open(o.Dir, state, o.Journal)
	if err != nil {
		return fmt.Errorf("serving %s: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if recovery.Torn > 0 {
		o.Log.Warn("a crash cut off the end of the journal: nobody was told that it was done", "bytes", recovery.Torn)
	}
	status := func() server.Status {
		return server.Status{Tree: state.Tree().Counts(), Journal: j.Status(), Recovery: recovery,
			Subtrees: state.Tree().Virtuals(), Uptime: time.Since(start).Seconds()}
	}
	counts := func() server.Status { return server.Status{Tree: state.Tree().Counts(), Journal: j.Status()} }
	o.Server.Status, o.Server.Collectors = status, server.Collectors(counts)
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return advice.With(fmt.Errorf("serving %s: %w", o.Dir, err), "give a free address: --listen 127.0.0.1:0 takes any port")
	}
	if o.Ready != nil {
		if err := o.Ready(l.Addr(), recovery); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	return server.New(store.New(state, j), o.Server).Serve(ctx, l)
}

// WriteAddr writes an address to a file that is there as a whole or not at all.
func WriteAddr(path string, addr net.Addr) error {
	if err := os.WriteFile(path+".tmp", []byte(addr.String()+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
