package hydra

import (
	"crypto/sha256"
	"encoding/binary"
)

// MemberID is the ID of a member of a name that none was given for: 63 bits of the name's
// SHA-256. A name whose member was removed cannot come back with it.
func MemberID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return max(1, binary.BigEndian.Uint64(sum[:8])>>1)
}
