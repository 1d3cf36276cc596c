package consensus

import (
	cryptorand "crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"

	"skerry/internal/base/advice"
	"skerry/systems/consensus/wal"
)

// A log is told from every other one, of a cluster of the same name too, by a random name.
// Consumers keep it beside their state, since an index alone says nothing of whose it is:
//
//  1. A state holds all of log A up to index 1000.
//  2. The directories of A are lost, and members of the same names begin log B.
//  3. A consumer would go on after 1000. Entries 2 to 1000 of B, acknowledged, would never
//     come to this state, and nobody would know.
//
// The first leader proposes the name in a change of membership that changes no member; the
// first such entry counts. It is in the membership from then on, and so in every segment's
// header and every snapshot: who joins late learns it with the membership. A log that an
// earlier version began gets a name once every member has said in its handshake that it
// knows names: one that did not would drop the name from its membership.

// Identity says which log this is.
type Identity struct {
	// Log is the log's random name, "" for none yet.
	Log string
	// Born says that the log has had a name since its beginning, or gets it before anybody's
	// entry: a state without a name is not of this log. Logs of earlier versions are not.
	Born bool
	// Since is the entry that gave the name to a log of an earlier version: all who apply what
	// comes after it know as much as this one. 0 where Born; the largest number before.
	Since uint64
	// Known says that the member has a membership, without which nothing is known of its log.
	Known bool
}

// Identity tells which log this is.
func (n *Node) Identity() Identity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.identity
}

func (c conf) identity() Identity {
	id := Identity{Log: c.Log, Born: c.Born, Since: c.Since, Known: len(c.Members) > 0}
	if c.Log == "" && !c.Born {
		id.Since = math.MaxUint64
	}
	return id
}

// NewLogName draws a log's name.
func NewLogName() (string, error) {
	var b [16]byte
	if _, err := cryptorand.Read(b[:]); err != nil {
		return "", fmt.Errorf("drawing a log's name: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// nameLog has the leader give the log its name.
func (m *machine) nameLog() {
	if m.conf.Log != "" || m.confAfter > m.published.index {
		return
	}
	self, votes := m.conf.member(m.cfg.id)
	for _, o := range m.conf.Members {
		if !m.conf.Born && o.ID != m.cfg.id && !m.naming[o.ID] {
			return
		}
	}
	for _, p := range m.props.pending {
		if p.conf != nil {
			return
		}
	}
	if votes {
		m.proposeChange(confChange{Op: opName, Member: self, Log: m.cfg.name}, func(uint64, error) {})
	}
}

// Begin makes the log of a member of a new cluster whose consumers have a state already: the
// log has a name, and begins after an index as if it had led to that state. Every member of
// the cluster begins so, with the same name, index and members. The directory must be empty.
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

// Vacant returns nil when the directory holds no log.
func Vacant(cfg Config) error {
	there, err := filepath.Glob(filepath.Join(cfg.Dir, "*.wal"))
	if err != nil || len(there) > 0 {
		return advice.With(fmt.Errorf("there is a log in %s", cfg.Dir), "see that the member does not run, and move its log away; what it holds and no database does is not taken over")
	}
	return nil
}

// createLog makes a log that begins with a membership.
func createLog(cfg Config, first conf) error {
	fs, err := cfg.fs(cfg.Dir)
	if err != nil {
		return advise(err)
	}
	log, err := wal.Open(fs, wal.Options{Cluster: cfg.Cluster, ID: cfg.Self.ID, Segment: segmentSize(cfg.MaxLog)})
	if err != nil {
		return advise(fmt.Errorf("making a log in %s: %w", cfg.Dir, err))
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
