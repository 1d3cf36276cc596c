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

// claimKey says what two clients must not share: of a load phase its records, of a run phase its operations.
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
		if strings.Contains(name, ".") { // redis.host and the like
			m.Connection[name] = value
		}
	}
	if o.Phase == load.PhaseLoad {
		m.From, m.N = w.InsertStart, w.InsertCount
		return m
	}
	w.OperationCount = 0 // two clients may draw more or fewer of the same operations
	if _, bounded := w.ExpectedInserts(); !bounded {
		w.ExpectedOperations = 0
	}
	m.Workload, m.Seed = &w, o.Seed
	return m
}

// claim holds the mark until release is called. taken says that another process on this machine holds it. Clients
// on other machines, and those that name the same cluster differently, are not seen.
//
// The mark is an abstract Unix socket, which the kernel removes with its process.
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

// warnConcurrent writes what other clients of the same table must know, and warns of one that does the same.
func warnConcurrent(stderr io.Writer, o Options, p plan) (release func() error) {
	w := p.spec.Workload
	taken, release, err := p.claimKey(o).claim()
	first, last := w.InsertStart, w.InsertStart+w.InsertCount-1
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "note: clients beside this one were not looked for: %v\n", err)
	case taken && o.Phase == load.PhaseLoad:
		fmt.Fprintf(stderr, "warning: another client on this machine is loading the same records, %d to %d: "+
			"give each client an insertstart and an insertcount of its own\n", first, last)
	case taken:
		fmt.Fprintf(stderr, "warning: another client on this machine draws the same operations, with the seed %d: "+
			"give each client a --seed of its own\n", o.Seed)
	}
	switch {
	case w.InsertCount == w.RecordCount:
	case o.Phase == load.PhaseLoad:
		fmt.Fprintf(stderr, "note: this client loads the records %d to %d of a table of %d (insertstart, insertcount)\n", first, last, w.RecordCount)
	case w.Mix.Insert > 0:
		fmt.Fprintf(stderr, "note: inserts begin at record %d (recordcount), whatever insertstart is: let one client insert\n", w.RecordCount)
	}
	return release
}
