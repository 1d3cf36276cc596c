package dbtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/test/testkit"
)

// upgradeVariants are the clusters that are upgraded, by database. Others have three nodes and no options.
var upgradeVariants = map[string][]Config{
	"redis":     redisVariants,
	"valkey":    redisVariants,
	"cassandra": {{Options: database.Options{"ring_delay": "4s", "phi_convict_threshold": 5, "start_timeout": "1h"}}},
	"hbase":     {{Options: database.Options{"regions": 3}}},
}

var redisVariants = []Config{
	{Variant: "masters", Options: database.Options{"appendfsync": "always"}},
	{Variant: "replicas", Nodes: 6, Options: database.Options{"replicas": 1, "wait": 1}},
}

// TestConformanceOfUpgrades makes every rolling upgrade that a database declares, under load.
func TestConformanceOfUpgrades(t *testing.T) {
	for _, about := range all.Registry() {
		d, ok := about.New().(database.Upgradable)
		if !ok {
			continue
		}
		variants := upgradeVariants[about.Name]
		if variants == nil {
			variants = []Config{{}}
		}
		for from, targets := range d.Upgrades().Steps {
			for _, c := range variants {
				c.About, c.Version = about, from
				t.Run(about.Name+"@"+from+" "+c.Variant, func(t *testing.T) { testUpgrade(t, c, targets[0]) })
			}
		}
	}
}

// testUpgrade upgrades the members of a cluster one after the other while rows are written. All
// acknowledged rows must be there afterwards, and a member must halt and revive with the new version.
func testUpgrade(t *testing.T, c Config, series string) {
	s := &suite{Config: c, db: c.About.New()}
	var to database.Installation
	for i, r := range c.About.Recipes {
		name := r.Key()
		if i == 0 {
			name = r.Name
		}
		for version, found := range map[string]*database.Installation{c.Version: &s.in, series: &to} {
			if version != r.Series {
				continue
			}
			testkit.Need(t, testkit.Feature{Name: name, Missing: func() string {
				if why := testkit.SkipReason(r, name); why != "" {
					return why
				}
				var err error
				if *found, err = database.Locate(s.db, version, ""); err != nil {
					return err.Error()
				}
				return ""
			}})
		}
	}
	s.setDefaults(t)
	s.row = newRow(s.db.Name(), s.in, s.Config)
	s.hosts = s.newHosts(t)
	cluster := s.startCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(s.Nodes+2)*s.Timeout)
	defer cancel()

	ledger, open := NewLedger("u"), s.clientOpener(cluster)
	stop, err := StartWriters(ctx, ledger, open, 4, 200)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.upgradeMembers(ctx, t, cluster, to, ledger), stop()); err != nil {
		t.Fatal(err)
	}
	// Two versions may be unable to agree, for example on a schema. One version must.
	for err := cluster.Ready(ctx); err != nil; err = cluster.Ready(ctx) {
		if linger.For(ctx, 100*time.Millisecond) != nil {
			t.Fatalf("after the upgrade: %v", err)
		}
	}
	s.expectMembers(t, cluster, s.hostNames(0, s.Nodes))
	account, err := ledger.Check(ctx, open, 4)
	t.Logf("rows: %+v", account)
	if err := errors.Join(err, account.Err()); err != nil {
		t.Error(err)
	}
	s.haltAndRevive(t, cluster, database.Graceful)
	if err := cluster.Err(); err != nil {
		t.Errorf("the upgrade counts as a failure: %v", err)
	}
}

// upgradeMembers upgrades all members, each after further rows were written.
func (s *suite) upgradeMembers(ctx context.Context, t *testing.T, cluster database.Cluster, to database.Installation, l *Ledger) error {
	t.Helper()
	u, ok := cluster.(database.UpgradableCluster)
	if !ok {
		return errors.New("the cluster cannot be upgraded")
	}
	if _, err := u.Upgrade(ctx, s.hosts[len(s.hosts)-1], to); !errors.Is(err, database.ErrNotMember) {
		t.Errorf("upgrade of a non-member: %v, want database.ErrNotMember", err)
	}
	order, err := u.UpgradeOrder(ctx, s.hostNames(0, s.Nodes))
	if err != nil || len(order) != s.Nodes {
		t.Errorf("order %v: %v", order, err)
	}
	for _, name := range order {
		least, _ := l.Rows()
		s.awaitRows(ctx, t, l, least+50)
		change, err := u.Upgrade(ctx, s.findHost(t, name), to)
		if err != nil {
			return err
		}
		if change.Accepted <= 0 || change.Complete < change.Accepted {
			t.Errorf("upgrade of %s: accepted after %v, complete after %v", name, change.Accepted, change.Complete)
		}
		t.Logf("%s: accepted after %v, complete after %v", name, change.Accepted, change.Complete)
	}
	least, _ := l.Rows()
	s.awaitRows(ctx, t, l, least+50) // written by the new version only
	return nil
}
