package hydra

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// collector shows a node's state as metrics.
type collector struct {
	node *Node
	one  map[string]*prometheus.Desc
	lag  *prometheus.Desc
	ends *prometheus.Desc
}

func newCollector(n *Node) *collector {
	c := &collector{node: n, one: make(map[string]*prometheus.Desc)}
	for name, help := range map[string]string{
		"term":      "Raft's term.",
		"commit":    "Index that is committed.",
		"applied":   "Index that this cloud's database has applied.",
		"log_bytes": "Size of the log on disk.",
		"leader":    "1 where this member leads.",
		"applier":   "1 where this member applies the log to its cloud's database.",
		"staleness": "Seconds that this cloud's database is at most behind; -1 where that is not known.",
		"stuck_at":  "Entry that this cloud's database does not take, 0 for none.",
		"serving":   "1 where this member answers reads and writes.",
	} {
		c.one[name] = prometheus.NewDesc("hydra_"+name, help, nil, nil)
	}
	c.lag = prometheus.NewDesc("hydra_database_lag_entries", "Committed entries that a cloud's database lacks.", []string{"cloud"}, nil)
	c.ends = prometheus.NewDesc("hydra_certificate_not_after_timestamp_seconds", "Unix time until which this member's certificate is good.", nil, nil)
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.one {
		to <- d
	}
	to <- c.lag
	to <- c.ends
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.node.Status(context.Background())
	gauge := func(name string, v float64) {
		to <- prometheus.MustNewConstMetric(c.one[name], prometheus.GaugeValue, v)
	}
	gauge("term", float64(s.Term))
	gauge("commit", float64(s.Commit))
	gauge("applied", float64(s.Applied))
	gauge("log_bytes", float64(s.Log.Bytes))
	gauge("leader", number(s.Leader == s.Member))
	gauge("applier", number(c.node.store != nil && c.node.lead.Load()))
	gauge("stuck_at", float64(c.node.stuck.index.Load()))
	gauge("serving", number(c.node.serving() == nil))
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

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
