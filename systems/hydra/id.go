package hydra

import "skerry/systems/consensus"

// MemberID is the ID of a member of a name that none was given for.
func MemberID(name string) uint64 { return consensus.MemberID(name) }
