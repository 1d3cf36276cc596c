package consensus

import (
	cryptorand "crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"skerry/internal/base/advice"
	"skerry/systems/consensus/wal"
)

// A random name distinguishes a log from every other one, also of a cluster with the same name. Consumers store the name
// with their state, because an index alone does not identify a log:
//
//  1. A state holds all of log A up to index 1000.
//  2. The directories of A are lost, and members of the same names begin log B.
//  3. Without names, the consumer would continue after index 1000. Entries 2 to 1000 of B, which were acknowledged,
//     would never reach the state, without any error.
//
// The first leader proposes the name in a change of membership that changes no member, and the first such entry counts.
// From then on the name is part of the membership, of every segment's header, and of every snapshot, so that later
// members learn it.

// Identity identifies a log.
type Identity struct {
	// Log is the random name of the log, "" if it has none yet.
	Log string
	// Known is true if the member has a membership. Otherwise its log is unknown.
	Known bool
}

// Identity returns the identity of the log.
func (n *Node) Identity() Identity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.identity
}

func (c conf) identity() Identity { return Identity{Log: c.Log, Known: len(c.Members) > 0} }

// NewLogName returns a random name for a log.
func NewLogName() (string, error) {
	var b [16]byte
	if _, err := cryptorand.Read(b[:]); err != nil {
		return "", fmt.Errorf("drawing a log's name: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

func (m *machine) nameLog() {
	if m.membership.conf.Log != "" || m.membership.changeIndex > m.published.index {
		return
	}
	self, votes := m.membership.conf.member(m.cfg.id)
	for _, p := range m.proposals.pending {
		if p.conf != nil {
			return
		}
	}
	if votes {
		m.proposeChange(confChange{Op: opName, Member: self, Log: m.cfg.name}, func(uint64, error) {})
	}
}

// Begin creates the log of a member of a new cluster whose consumers have a state already. The log has a name, and begins
// after index as if it had led to that state. Call it for every member of the cluster with the same name, index and
// members. The directory must be empty.
func Begin(cfg Config, name string, index uint64) error {
	if err := cfg.check(); err != nil {
		return err
	}
	if err := Vacant(cfg); err != nil {
		return err
	}
	first, err := firstConf(cfg.Members)
	if err != nil {
		return err
	}
	first.Index, first.Through, first.Log = max(index, 1), max(index, 1), name
	return createLog(cfg, first)
}

// Vacant returns an error if the directory holds a log.
func Vacant(cfg Config) error {
	there, err := filepath.Glob(filepath.Join(cfg.Dir, "*.wal"))
	if err != nil || len(there) > 0 {
		return advice.With(fmt.Errorf("there is a log in %s", cfg.Dir), "stop the member, and move its log away; "+
			"entries that no database has applied are lost")
	}
	return nil
}

func createLog(cfg Config, first conf) error {
	fs, err := cfg.fs(cfg.Dir)
	if err != nil {
		return advise(err)
	}
	log, err := wal.Open(fs, wal.Options{Cluster: cfg.Cluster, ID: cfg.Self.ID, Segment: segmentSize(cfg.MaxLog)})
	if err != nil {
		return advise(fmt.Errorf("creating a log in %s: %w", cfg.Dir, err))
	}
	defer log.Close() // it is durable, or has failed
	data, err := first.encode()
	if err != nil {
		return err
	}
	if err := log.Reset(first.Index, 1, data); err != nil {
		return fmt.Errorf("beginning the log: %w", err)
	}
	return nil
}
