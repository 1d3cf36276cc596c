package consensus

import (
	"crypto/sha256"
	"encoding/binary"

	"skerry/systems/consensus/member"
)

// Types of package member under the names that callers of this package use.
type (
	Role         = member.Role
	Member       = member.Member
	Status       = member.NodeStatus
	MemberStatus = member.Status
)

// Roles of members.
const (
	Voter   = member.Voter
	Learner = member.Learner
	Witness = member.Witness
)

// MemberID is the ID of a member of a name that none was given for: 63 bits of the name's
// SHA-256. A name whose member was removed cannot come back with it.
func MemberID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return max(1, binary.BigEndian.Uint64(sum[:8])>>1)
}
