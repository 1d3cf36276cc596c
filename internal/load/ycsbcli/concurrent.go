package ycsbcli

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// claimKey identifies what two clients must not share: the records of a load phase, or the
// operations of a run phase.
type claimKey struct {
	Phase      load.Phase
	Database   string
	Connection map[string]string // properties of the database's client
	Table      string
	From, N    int64          // records to load
	Workload   *ycsb.Workload // of a run phase
	Seed       uint64
}

func (p plan) claimKey(o Options) claimKey {
	w := p.spec.Workload
	m := claimKey{Phase: o.Phase, Database: o.Database, Connection: map[string]string{}, Table: w.Table}
	for name, value := range p.properties {
		if strings.Contains(name, ".") { // such as redis.host
			m.Connection[name] = value
		}
	}
	if o.Phase == load.PhaseLoad {
		m.From, m.N = w.InsertStart, w.InsertCount
		return m
	}
	w.OperationCount = 0 // clients may run different numbers of the same operations
	if _, bounded := w.ExpectedInserts(); !bounded {
		w.ExpectedOperations = 0
	}
	m.Workload, m.Seed = &w, o.Seed
	return m
}

// claim claims the key until release is called. taken reports that another process on this machine
// holds it. Clients on other machines are not detected, nor are those that name the same cluster
// differently.
//
// The claim is an abstract Unix socket, which the kernel removes with its process.
func (m claimKey) claim() (taken bool, release func() error, err error) {
	release = func() error { return nil }
	text, err := json.Marshal(m)
	if err != nil {
		return false, release, err
	}
	name := fmt.Sprintf("@skerry-ycsb-%x", sha256.Sum256(text))
	s, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if errors.Is(err, unix.EADDRINUSE) {
		return true, release, nil
	}
	if err != nil {
		return false, release, err
	}
	return false, s.Close, nil
}

func warnConcurrent(stderr io.Writer, o Options, p plan) (release func() error) {
	w := p.spec.Workload
	taken, release, err := p.claimKey(o).claim()
	first, last := w.InsertStart, w.InsertStart+w.InsertCount-1
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "note: cannot check for concurrent clients: %v\n", err)
	case taken && o.Phase == load.PhaseLoad:
		fmt.Fprintf(stderr, "warning: another client on this machine is loading the same records, %d to %d: "+
			"give each client its own insertstart and insertcount\n", first, last)
	case taken:
		fmt.Fprintf(stderr, "warning: another client on this machine runs the same operations, with seed %d: "+
			"give each client its own --seed\n", o.Seed)
	}
	switch {
	case w.InsertCount == w.RecordCount:
	case o.Phase == load.PhaseLoad:
		fmt.Fprintf(stderr, "note: this client loads records %d to %d of a table of %d (insertstart, insertcount)\n",
			first, last, w.RecordCount)
	case w.Mix.Insert > 0:
		fmt.Fprintf(stderr, "note: inserts begin at record %d (recordcount), regardless of insertstart: let only one client insert\n",
			w.RecordCount)
	}
	return release
}
