package event

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// upgradableCluster upgrades members in the reverse order.
type upgradableCluster struct{ *cluster }

func (*upgradableCluster) UpgradeOrder(_ context.Context, nodes []string) ([]string, error) {
	nodes = slices.Clone(nodes)
	slices.Reverse(nodes)
	return nodes, nil
}

func (c *upgradableCluster) Upgrade(ctx context.Context, h host.Host, to database.Installation) (database.Change, error) {
	return c.do(ctx, "upgrade to "+to.Version, h.Name(), func() {})
}

func newUpgradeBench(t *testing.T) *bench {
	b := newBench(t)
	b.world.Cluster = &upgradableCluster{b.cluster}
	b.world.Installation = database.Installation{Version: "7.0.15"}
	b.world.Upgrades = map[string]database.Installation{"redis@8.0": {Version: "8.0.6"}, "redis@8.2": {Version: "8.2.1"}}
	return b
}

// memberLines formats the steps of members: "narvik 7.0.15>8.0.6 10-12-15" for began, accepted and completed.
func memberLines(s *record.Step) (lines []string) {
	at := func(m *record.Moment) string {
		if m == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", m.Seconds())
	}
	for _, m := range s.Members {
		lines = append(lines, fmt.Sprintf("%s %s>%s %s-%s-%s", m.Node, m.From, m.To, at(&m.Began), at(m.Accepted), at(m.Completed)))
	}
	return lines
}

// Members are upgraded one after the other, in the order of the database. The change stays.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newUpgradeBench(t)
		b.start("- {at: 10s, upgrade: {to: redis@8.0, nodes: data}}\n- {when: completed, upgrade: {to: redis@8.2, nodes: narvik}}")
		b.pass(time.Minute)
		events := b.end()
		want := []string{"upgrade oslo,bergen,narvik 10-25 active", "upgrade narvik 25-30 active"}
		if diff := cmp.Diff(want, formatEvents(events)); diff != "" {
			t.Error(diff)
		}
		members := []string{"narvik 7.0.15>8.0.6 10-12-15", "bergen 7.0.15>8.0.6 15-17-20", "oslo 7.0.15>8.0.6 20-22-25"}
		if diff := cmp.Diff(members, memberLines(events[0].Apply)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"narvik 8.0.6>8.2.1 25-27-30"}, memberLines(events[1].Apply)); diff != "" {
			t.Error(diff)
		}
		if events[0].Apply.Accepted.Seconds() != 22 {
			t.Errorf("accepted at %v, want the last member's 22 s", events[0].Apply.Accepted.Seconds())
		}
		recorded := slices.ContainsFunc(b.lines, func(e record.Event) bool { return e.ID == 1 && len(e.Apply.Members) == 1 })
		if !recorded {
			t.Error("a member's upgrade was recorded only after the next one")
		}
	})
}

// The end of the trial completes the member in progress, and no further one.
func TestUpgradeEndsWithTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newUpgradeBench(t)
		b.start("- {at: 10s, upgrade: {to: redis@8.0, nodes: data}}")
		b.pass(17 * time.Second)
		e := b.end()[0]
		if e.State != record.EventFailed || !strings.Contains(e.Error, errTrialEnded.Error()) || e.Revert != nil {
			t.Errorf("the event ended as %+v", e)
		}
		if diff := cmp.Diff([]string{"narvik 7.0.15>8.0.6 10-12-15", "bergen 7.0.15>8.0.6 15-17-20"}, memberLines(e.Apply)); diff != "" {
			t.Error(diff)
		}
	})
}

// A member that fails ends the upgrade. The record names it.
func TestUpgradeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newUpgradeBench(t)
		b.cluster.fails["upgrade to 8.0.6 bergen"] = errors.New("the server does not start")
		b.start("- {at: 10s, upgrade: {to: redis@8.0, nodes: data}}")
		b.pass(30 * time.Second)
		e := b.end()[0]
		if e.State != record.EventFailed || !strings.Contains(e.Error, "the server does not start") || e.Revert != nil {
			t.Errorf("the event ended as %+v", e)
		}
		if diff := cmp.Diff([]string{"narvik 7.0.15>8.0.6 10-12-15", "bergen 7.0.15>8.0.6 15--"}, memberLines(e.Apply)); diff != "" {
			t.Error(diff)
		}
	})
}

// etcdLike is a database with upgrades by one series at a time.
type etcdLike struct{ database.Database }

func (etcdLike) Name() string { return "etcd" }

func (etcdLike) Upgrades() database.Upgrades {
	return database.Upgrades{
		Recipes: []install.Recipe{{Series: "3.7"}, {Series: "3.6"}, {Series: "3.5"}},
		Steps:   map[string][]string{"3.5": {"3.6"}, "3.6": {"3.7"}}, Rule: "one minor version at a time",
	}
}

// onlySeries is a database without other series.
type onlySeries struct{ database.Database }

func (onlySeries) Name() string { return "etcd" }

func TestCheckUpgrade(t *testing.T) {
	one := func(to, nodes string) string { return "- {at: 1s, upgrade: {to: " + to + ", nodes: " + nodes + "}}\n" }
	all := func(to string) string { return one(to, "data") }
	tests := map[string]struct{ version, events, error string }{
		"possible":     {"3.5", all("etcd@3.6"), ""},
		"in two steps": {"3.5", all("etcd@3.6") + all("etcd@3.7"), ""},
		"one member":   {"3.5", one("etcd@3.6", "oslo"), ""},
		"skipped": {"3.5", all("etcd@3.7"),
			"[0].upgrade.to: no rolling upgrade from 3.5 to 3.7: one minor version at a time; upgrade to etcd@3.6 first"},
		"running":    {"", all("etcd@3.7"), "etcd 3.7 is the running version"},
		"twice":      {"3.5", all("etcd@3.6") + one("etcd@3.6", "oslo"), "[1].upgrade.to: no rolling upgrade: etcd 3.6 is the running version"},
		"older":      {"3.6", all("etcd@3.5"), "a server does not start on the directory of a newer version"},
		"unknown":    {"3.5", all("etcd@4"), "etcd 4: no such series; use one of 3.7, 3.6, 3.5"},
		"two series": {"3.5", one("etcd@3.6", "oslo") + one("etcd@3.7", "oslo"), "members of 3.5 and 3.7 would be in one cluster"},
		"another":    {"3.5", all("redis@8.0"), `"redis@8.0" is no series of etcd: want etcd@SERIES`},
		"no series":  {"3.5", all("etcd"), `"etcd" is no series of etcd`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := stage()
			s.Database, s.Version = etcdLike{}, tt.version
			var problems []string
			CheckDatabase(read(t, tt.events), s, "etcd", able, func(path, hint, format string, args ...any) {
				problems = append(problems, path+": "+fmt.Sprintf(format, args...)+"; "+hint)
			})
			if tt.error == "" && len(problems) > 0 || tt.error != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.error)) {
				t.Errorf("%q, want %q", problems, tt.error)
			}
		})
	}
	s := stage()
	s.Database = onlySeries{}
	CheckDatabase(read(t, all("etcd@3.6")), s, "etcd", able, func(_, _, format string, args ...any) {
		if got := fmt.Sprintf(format, args...); got != "no rolling upgrade: etcd has no other series" {
			t.Errorf("a database without other series: %s", got)
		}
	})
	e, err := Parse([]byte(`{upgrade: {to: etcd@3.6, nodes: oslo}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = CheckFired(e, stage(), "etcd", able)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error()+advice.Of(err), "before the trial starts") {
		t.Errorf("firing an upgrade: %v", err)
	}
	if got := UpgradeTargets(read(t, all("a@1")+"- {at: 1s, kill: oslo}\n"+all("a@2"))); !slices.Equal(got, []string{"a@1", "a@2"}) {
		t.Errorf("targets %v", got)
	}
}
