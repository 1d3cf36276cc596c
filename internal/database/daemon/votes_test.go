package daemon_test

import (
	"errors"
	"fmt"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

func TestVotes(t *testing.T) {
	for _, c := range []struct {
		votes daemon.Votes
		may   bool
		why   string
	}{
		{daemon.Votes{All: 1, Own: 1, Others: 0, Helps: true}, false, "the last one"},
		{daemon.Votes{All: 2, Own: 1, Others: 1, Helps: true}, true, "both agree, and one is all of one"},
		{daemon.Votes{All: 2, Own: 1, Others: 1}, false, "one of two cannot agree"},
		{daemon.Votes{All: 3, Own: 1, Others: 2, Helps: true}, true, "all serve"},
		{daemon.Votes{All: 3, Own: 1, Others: 2}, true, "two of three agree without it"},
		{daemon.Votes{All: 3, Own: 1, Others: 1, Helps: true}, false, "two of three agree, but one of two is left"},
		{daemon.Votes{All: 4, Own: 1, Others: 2, Helps: true}, true, "three of four agree, two of three are left"},
		{daemon.Votes{All: 4, Own: 1, Others: 2}, false, "two of four cannot agree"},
		{daemon.Votes{All: 5, Own: 1, Others: 3}, true, "three of five agree, three of four are left"},
		{daemon.Votes{All: 5, Own: 1, Others: 2, Helps: true}, false, "three of five agree, but two of four are left"},
		{daemon.Votes{All: 3, Own: 0, Others: 2}, true, "it has no vote"},
		{daemon.Votes{All: 3, Own: 0, Others: 1}, false, "it has no vote, and there is no majority anyway"},
	} {
		err := c.votes.Check()
		if c.may != (err == nil) || err != nil && !errors.Is(err, database.ErrFixed) {
			t.Errorf("%s: %+v: %v", c.why, c.votes, err)
		}
	}
}

// Whenever a member may leave a group, the group could agree on it, and can on what follows:
// whoever agrees is a majority by counting heads.
func TestMajority(t *testing.T) {
	majority := func(have, of int) bool { return have > of-have }
	for all := 2; all <= 9; all++ {
		for others := range all {
			for _, helps := range []bool{false, true} {
				agree := others
				if helps {
					agree++
				}
				want := majority(agree, all) && majority(others, all-1)
				if err := (daemon.Votes{All: all, Own: 1, Others: others, Helps: helps}).Check(); (err == nil) != want {
					t.Error(fmt.Sprintf("%d of %d, helps %t:", others, all, helps), err)
				}
			}
		}
	}
}
