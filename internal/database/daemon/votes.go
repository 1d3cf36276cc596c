package daemon

import (
	"fmt"

	"skerry/internal/database"
)

// Votes are a group's when a member is to leave.
type Votes struct {
	All    int  // of the group's members
	Own    int  // of the one that leaves, among All
	Others int  // of the others that serve
	Helps  bool // the one that leaves serves too, until the group has agreed
}

// CheckLeave is the rule of Votes for a group of one vote a member. Others are those beside m
// that serve.
func CheckLeave[M SeatedMember](all []M, m M, manner database.Manner, others int) error {
	return Votes{All: len(all), Own: 1, Others: others, Helps: manner == database.Graceful && !m.Halted()}.CheckLeave()
}

// CheckLeave refuses what would leave the group without a majority, with an error that wraps
// database.ErrFixed: one of All has to agree on the removal, and one of those that are left
// on everything that follows.
func (v Votes) CheckLeave() error {
	left := v.All - v.Own
	if left == 0 {
		return fmt.Errorf("%w: it is the last member", database.ErrFixed)
	}
	agree := v.Others
	if v.Helps {
		agree += v.Own
	}
	for _, need := range []struct{ have, of int }{{agree, v.All}, {v.Others, left}} {
		if 2*need.have <= need.of {
			return fmt.Errorf("%w: %d of %d votes would be left: that is no majority", database.ErrFixed, need.have, need.of)
		}
	}
	return nil
}
