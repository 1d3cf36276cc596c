package hydra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
)

func (n *Node) Status(context.Context) api.Status {
	l := n.log.Status()
	s := api.Status{
		Cluster: n.Cluster, Member: n.Name, Cloud: n.Cloud, Witness: n.store == nil, Role: l.State, Term: l.Term, Commit: l.Commit,
		Applied: n.progress.index(), Log: api.Log{Name: n.log.Identity().Log, First: l.First, Last: l.Last,
			Bytes: l.LogBytes}, Members: n.listMembers(), Version: n.Version,
		ElectionMS: float64(l.Election.Microseconds()) / 1000,
	}
	if err := n.checkServing(); err != nil && n.store != nil {
		s.Problem = err.Error()
	}
	if n.Expires != nil {
		expires := n.Expires()
		s.Certificate = &api.Certificate{Expires: expires, LeftS: int64(time.Until(expires).Seconds()), Authorities: n.Authorities()}
		if s.Certificate.LeftS < 0 {
			s.Problem = fmt.Sprintf("the certificate of %s has expired, at %s: others refuse its connections", n.Name, expires.Format(time.DateTime))
		}
	}
	if l.StorageError != "" {
		s.Problem = l.StorageError
	}
	seen := map[string]int{}
	for _, m := range l.Members {
		if m.ID == l.Leader {
			s.Leader = m.Name
		}
		if m.ID == l.Self.ID && !m.Votes {
			s.Role = "learner"
		}
		if m.Role == consensus.Witness {
			continue
		}
		d := n.describeDatabase(m, l)
		if i, ok := seen[m.Site]; ok {
			if d.Applied > s.Databases[i].Applied {
				s.Databases[i] = d
			}
			continue
		}
		seen[m.Site] = len(s.Databases)
		s.Databases = append(s.Databases, d)
	}
	return s
}

// wholeLog is the first index of an uncompacted log; entry 1 is the first membership, which is not applied.
const wholeLog = 2

func (n *Node) describeDatabase(m consensus.MemberStatus, l consensus.Status) api.Database {
	d := api.Database{Cloud: m.Site, State: api.StateServing, Applied: m.Applied, StalenessMS: -1}
	if m.Site == n.Cloud && n.store != nil {
		d.Kind, d.Applied = n.store.Kind(), n.progress.index()
		if age := n.staleness(); age >= 0 {
			d.StalenessMS = float64(age.Microseconds()) / 1000
		}
		d.StuckAt = n.stuck.index.Load()
		if t := n.databaseProblem(); t != nil {
			d.State, d.Problem = api.StateDown, t.err.Error()
			if errors.Is(t.err, ErrForeign) || errors.Is(t.err, ErrAhead) {
				d.State = api.StateRefused
			}
		}
		if n.rebuilding.Load() {
			d.State = api.StateRebuilding
		}
	} else if !m.Connected {
		d.State, d.Problem = api.StateUnknown, m.Error
	}
	switch {
	case l.First <= wholeLog || d.Applied+1 >= l.First || d.State == api.StateRebuilding:
	case d.Applied == 0 && m.Site != n.Cloud:
		d.State = api.StateUnknown // no report yet
	default:
		d.State = api.StateCutLoose
	}
	if l.Commit > d.Applied {
		d.Lag = l.Commit - d.Applied
	}
	return d
}

func (n *Node) AddMember(ctx context.Context, m api.Member) (api.Member, error) {
	role := consensus.Voter
	if m.Witness {
		role = consensus.Witness
	}
	if m.ID == 0 {
		m.ID = MemberID(m.Name)
	}
	err := n.log.Add(ctx, consensus.Member{ID: m.ID, Name: m.Name, Addr: m.Peer, Site: m.Cloud, Role: role})
	if err != nil {
		return m, proposeProblem(fmt.Errorf("adding %s: %w", m.Name, err))
	}
	n.directory.set(m.ID, m.API)
	return m, nil
}

func (n *Node) RemoveMember(ctx context.Context, id uint64) error {
	there := false
	for _, m := range n.log.Members() {
		there = there || m.ID == id
	}
	if !there {
		return nil
	}
	if err := n.log.Remove(ctx, id); err != nil {
		return proposeProblem(fmt.Errorf("removing member %d: %w", id, err))
	}
	return nil
}

func (n *Node) Transfer(ctx context.Context, to string) error {
	for _, m := range n.log.Members() {
		if m.Name == to {
			if err := n.log.Transfer(ctx, m.ID); err != nil {
				return api.Problemf(api.CodeUnavailable, "transferring leadership to %s: %v", to, err)
			}
			return nil
		}
	}
	return api.Problemf(api.CodeBadRequest, "no member named %q", to)
}

type collector struct {
	node *Node
	one  map[string]*prometheus.Desc
	lag  *prometheus.Desc
	ends *prometheus.Desc
}

func newCollector(n *Node) *collector {
	c := &collector{node: n, one: make(map[string]*prometheus.Desc)}
	for name, help := range map[string]string{
		"term":      "Raft term.",
		"commit":    "Committed index.",
		"applied":   "Applied index of this cloud's database.",
		"log_bytes": "Size of the log on disk.",
		"leader":    "1 if this member is the leader.",
		"applier":   "1 if this member applies the log to its cloud's database.",
		"staleness": "Maximum staleness of this cloud's database in seconds; -1 if unknown.",
		"stuck_at":  "Entry that this cloud's database rejects; 0 for none.",
		"serving":   "1 if this member answers reads and writes.",
	} {
		c.one[name] = prometheus.NewDesc("hydra_"+name, help, nil, nil)
	}
	c.lag = prometheus.NewDesc("hydra_database_lag_entries", "Committed entries that a cloud's database lacks.", []string{"cloud"}, nil)
	c.ends = prometheus.NewDesc("hydra_certificate_not_after_timestamp_seconds",
		"Unix time at which this member's certificate expires.", nil, nil)
	return c
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.one {
		to <- d
	}
	to <- c.lag
	to <- c.ends
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.node.Status(context.Background())
	gauge := func(name string, v float64) {
		to <- prometheus.MustNewConstMetric(c.one[name], prometheus.GaugeValue, v)
	}
	gauge("term", float64(s.Term))
	gauge("commit", float64(s.Commit))
	gauge("applied", float64(s.Applied))
	gauge("log_bytes", float64(s.Log.Bytes))
	gauge("leader", boolToFloat(s.Leader == s.Member))
	gauge("applier", boolToFloat(c.node.store != nil && c.node.applying.Load()))
	gauge("stuck_at", float64(c.node.stuck.index.Load()))
	gauge("serving", boolToFloat(c.node.checkServing() == nil))
	age := c.node.staleness().Seconds()
	if age < 0 {
		age = -1
	}
	gauge("staleness", age)
	if s.Certificate != nil {
		to <- prometheus.MustNewConstMetric(c.ends, prometheus.GaugeValue, float64(s.Certificate.Expires.Unix()))
	}
	for _, d := range s.Databases {
		to <- prometheus.MustNewConstMetric(c.lag, prometheus.GaugeValue, float64(d.Lag), d.Cloud)
	}
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
