package event

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

var upgradeKind = Kind{
	Name: "upgrade", Summary: "upgrades members to another series, one after the other, on the same data.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed, Settles: true, Member: record.Upgrades},
	Docs: Docs{SectionMembership, []Row{{Examples: []string{`{to: redis@8.0, nodes: data}`},
		Text: `each member stops, starts the other series on its data, serves and catches up; then the next one follows. ` +
			`See [rolling upgrade](howto/upgrade.md#rolling-upgrade)`}}},
	Preparation: "an installation that is found before the trial starts",
	newSpec:     func() kindSpec { return new(Upgrade) },
}

// Upgrade upgrades members to another series, one after the other: a member stops, starts the other
// series on its data, serves and has caught up; then the next one follows. The order is that which
// the database's makers recommend. The change is permanent.
type Upgrade struct {
	// To is the series to upgrade to, as NAME@SERIES (redis@8.0). It must be installed.
	To string `yaml:"to" json:"to" jsonschema:"required"`
	// Nodes are names of nodes, of sites or of groups (data).
	Nodes Names `yaml:"nodes" json:"nodes" jsonschema:"required"`
}

func (u *Upgrade) check(s Layout, fail failure) {
	NodeSelector{Nodes: u.Nodes}.checkMembers(s, fail, "upgraded")
}

func (u *Upgrade) draw(s Layout, _ int, _ map[string]bool, _ *rand.Rand) action {
	nodes, _ := s.resolveNames(u.Nodes)
	return newNodeAction(nodeAction{
		nodes: nodes, text: "%s upgraded to " + u.To,
		order: func(ctx context.Context, w *Testbed, nodes []string) ([]string, error) {
			if c, ok := w.Cluster.(database.UpgradableCluster); ok {
				return c.UpgradeOrder(ctx, nodes)
			}
			return nil, fmt.Errorf("upgrade: %w", errUnavailable)
		},
		do: func(ctx context.Context, w *Testbed, node string, p *progress) error {
			return w.upgrade(ctx, node, u.To, p)
		},
	})
}

// checkDatabase reports upgrades that the makers do not support, and two series that cannot be in one
// cluster. It follows the upgrades in the order of the list.
func (u *Upgrade) checkDatabase(c databaseCheck, _ Event, fail failure) {
	runs := map[string]string{}
	for _, n := range c.stage.databaseNodes() {
		runs[n] = c.stage.Version
	}
	for _, e := range c.events {
		above, ok := e.Spec.spec.(*Upgrade)
		if !ok {
			continue
		}
		name, series, _ := strings.Cut(above.To, "@")
		nodes, _ := c.stage.resolveNames(above.Nodes)
		if above != u {
			for _, n := range nodes {
				runs[n] = series
			}
			continue
		}
		if _, able := c.stage.Database.(database.Upgradable); able && (name != c.name || series == "") {
			fail("to", "", "%q is no series of %s: want %s@SERIES", u.To, c.name, c.name)
			return
		}
		for _, n := range nodes {
			if err := database.CheckUpgrade(c.stage.Database, runs[n], series); err != nil {
				fail("to", advice.Of(err), "%v", err)
				return
			}
		}
		for _, n := range c.stage.Data {
			other := runs[n]
			if !slices.Contains(nodes, n) && other != series && database.CheckUpgrade(c.stage.Database, other, series) != nil {
				fail("to", "upgrade all members to each series in turn", "%v: members of %s and %s would be in one cluster",
					database.ErrUpgrade, other, series)
				return
			}
		}
		return
	}
}

// UpgradeTargets returns the targets NAME@SERIES of all upgrades.
func UpgradeTargets(events []Event) (targets []string) {
	for _, e := range events {
		if u, ok := e.Spec.spec.(*Upgrade); ok {
			targets = append(targets, u.To)
		}
	}
	return targets
}

// upgrade upgrades a member. The end of the trial does not interrupt it, because the audit reads from
// all members.
func (w *Testbed) upgrade(ctx context.Context, name, target string, p *progress) error {
	return w.changeMembership(ctx, name, p, func(h host.Host) (database.Change, error) {
		c, able := w.Cluster.(database.UpgradableCluster)
		to, found := w.Upgrades[target]
		switch {
		case !able || !found:
			return database.Change{}, fmt.Errorf("upgrade of %s to %s: %w", name, target, errUnavailable)
		case w.nodeState(name).isHalted():
			return database.Change{}, fmt.Errorf("%w: the database on %s is down", errState, name)
		}
		m := record.MemberStep{Node: name, From: cmp.Or(w.versions[name], w.Installation.Version), To: to.Version}
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
		defer cancel()
		change, err := c.Upgrade(ctx, h, to)
		p.finishMember(m, began, change)
		if err == nil {
			if w.versions == nil {
				w.versions = map[string]string{}
			}
			w.versions[name] = to.Version
		}
		return change, err
	})
}
