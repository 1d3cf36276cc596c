package etcd

import (
	"errors"
	"log/slog"
	"testing"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// An upgrade from 3.5 to 3.6 is followed immediately by one to 3.7, which cannot read the log. The member does not
// change.
func TestUpgradeOfOldLog(t *testing.T) {
	d, installed := New(), map[string]database.Installation{}
	for _, series := range []string{"3.5", "3.6", "3.7"} {
		testkit.Need(t, testkit.Feature{Name: Name + "@" + series, Missing: func() string {
			in, err := database.Locate(d, series, "")
			if err != nil {
				return err.Error()
			}
			installed[series] = in
			return testkit.SkipReason(Recipes[2], Name+"@3.5")
		}})
	}
	nodes := testhost.Loopback(t, 1)
	c, err := d.Start(t.Context(), database.Env{
		Nodes: []host.Host{nodes[0]}, Control: nodes[0], Installation: installed["3.5"], Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	u := c.(database.UpgradableCluster)
	if _, err := u.Upgrade(t.Context(), nodes[0], installed["3.6"]); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Upgrade(t.Context(), nodes[0], installed["3.7"]); !errors.Is(err, database.ErrUpgrade) {
		t.Errorf("upgrade of a log without a snapshot: %v, want database.ErrUpgrade", err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
}
