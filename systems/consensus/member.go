package consensus

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Role is what a member does for the cluster.
type Role string

const (
	// Voter keeps the log, counts towards majorities and offers Entries to its consumer.
	Voter Role = "voter"
	// Learner receives the log and offers Entries but does not count towards majorities.
	Learner Role = "learner"
	// Witness keeps the log and counts towards majorities but has no consumer: its Entries
	// returns ErrWitness. Two places alone cannot lose either and go on, since neither
	// can tell whether the other is gone or only out of reach; a witness in a third place
	// breaks the tie without a database there. It costs a disk write per batch and the
	// bandwidth of the log. It cannot give state to others, so that it passes leadership
	// on as soon as another voter is up to date; and an entry that only a witness and one
	// consumer's member hold is applied nowhere else until that member is back or the
	// witness has passed it on.
	Witness Role = "witness"
)

// Member is one process of the cluster.
type Member struct {
	// ID is not 0 and never used again after the member's removal.
	ID uint64 `json:"id"`
	// Name is for people.
	Name string `json:"name"`
	// Addr is where other members reach it: host:port.
	Addr string `json:"addr"`
	// Site is the cloud or datacentre that it stands in; may be empty.
	Site string `json:"site,omitempty"`
	Role Role   `json:"role"`
}

func (m Member) String() string {
	return fmt.Sprintf("%s (%d, %s at %s)", m.Name, m.ID, m.Role, m.Addr)
}

// MemberID is the ID of a member of a name that none was given for: 63 bits of the name's
// SHA-256. A name whose member was removed cannot come back with it.
func MemberID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return max(1, binary.BigEndian.Uint64(sum[:8])>>1)
}
