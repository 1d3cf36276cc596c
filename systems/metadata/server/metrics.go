package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	took     [32]prometheus.Observer // by operation
	ok       [32]prometheus.Counter
	refused  prometheus.Counter
	open     prometheus.Gauge
}

func newMetrics(collectors []prometheus.Collector) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "skerry_metadata_commands_total", Help: "Commands that were answered, by operation and status.",
		}, []string{"op", "status"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "skerry_metadata_connections_refused_total", Help: "Connections refused because too many were open.",
		}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "skerry_metadata_connections", Help: "Connections that are open.",
		}),
	}
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "skerry_metadata_command_seconds", Help: "From the command's arrival to its answer, durability included, by operation.",
		Buckets: prometheus.ExponentialBuckets(2e-6, 4, 11), // 2 us to 2 s
	}, []string{"op"})
	for _, o := range append(metadata.Ops(), metadata.Invalid) {
		name := o.String()
		if o == metadata.Invalid {
			name = "invalid"
		}
		m.took[o] = took.WithLabelValues(name)
		m.ok[o] = m.requests.WithLabelValues(name, "200")
	}
	m.registry.MustRegister(append(collectors, m.requests, took, m.refused, m.open)...)
	return m
}

func (m *metrics) observe(o metadata.Op, err error, start time.Time) {
	m.took[o].Observe(time.Since(start).Seconds())
	if err == nil {
		m.ok[o].Inc()
		return
	}
	name := o.String()
	if o == metadata.Invalid {
		name = "invalid"
	}
	m.requests.WithLabelValues(name, strconv.Itoa(metadata.HTTPStatus(err))).Inc()
}

func gauge(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "skerry_metadata_" + name, Help: help}, read)
}

func counter(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "skerry_metadata_" + name, Help: help}, read)
}

func Collectors(status func() protocol.Status) []prometheus.Collector {
	return []prometheus.Collector{
		gauge("directories", "Physical directories in the tree.", func() float64 { return float64(status().Tree.Directories) }),
		gauge("virtual_directories", "Directories of other servers in the tree.", func() float64 { return float64(status().Tree.Virtual) }),
		gauge("files", "Files in the tree.", func() float64 { return float64(status().Tree.Files) }),
		gauge("file_bytes", "Bytes of the files' contents.", func() float64 { return float64(status().Tree.Bytes) }),
		counter("lock_waits_total", "Acquisitions of tree locks that had to wait.", func() float64 { return float64(status().Tree.LockWaits) }),
		counter("lock_wait_seconds_total", "Time spent waiting for tree locks.",
			func() float64 { return float64(status().Tree.LockWaitNS) / 1e9 }),
		counter("read_retries_total", "Reads restarted because their path changed.",
			func() float64 { return float64(status().Tree.ReadRetries) }),
		counter("journal_records_total", "Records of the journal since its beginning.",
			func() float64 { return float64(status().Journal.Index) }),
		counter("journal_fsyncs_total", "Groups that were made durable since the start.",
			func() float64 { return float64(status().Journal.Groups) }),
		counter("journal_fsync_seconds_total", "How long writing and syncing groups took since the start.",
			func() float64 { return status().Journal.Syncing }),
		gauge("journal_longest_fsync_seconds", "How long the slowest group took since the start.",
			func() float64 { return status().Journal.LongestSync }),
		gauge("journal_bytes", "Bytes of the journal's segments.", func() float64 { return float64(status().Journal.LogBytes) }),
		gauge("snapshot_bytes", "Bytes of the last snapshot.", func() float64 { return float64(status().Journal.SnapshotBytes) }),
	}
}
