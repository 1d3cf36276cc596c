package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Second is one row of timeline.parquet: one second of a trial as the driver measured it.
type Second struct {
	T            int64   `parquet:"t" json:"t"`               // seconds since the measurement began; negative in warm-up
	Length       float64 `parquet:"length_s" json:"length_s"` // of the bin: the last one of a trial is shorter
	OK           int64   `parquet:"ok" json:"ok"`
	Failed       int64   `parquet:"failed" json:"failed"`
	Unknown      int64   `parquet:"unknown" json:"unknown"`
	Dropped      int64   `parquet:"dropped" json:"dropped"`
	ServiceP50   float64 `parquet:"service_p50_us" json:"service_p50_us"`
	ServiceP95   float64 `parquet:"service_p95_us" json:"service_p95_us"`
	ServiceP99   float64 `parquet:"service_p99_us" json:"service_p99_us"`
	ServiceP999  float64 `parquet:"service_p999_us" json:"service_p999_us"`
	ServiceMax   float64 `parquet:"service_max_us" json:"service_max_us"`
	ResponseP50  float64 `parquet:"response_p50_us" json:"response_p50_us"`
	ResponseP95  float64 `parquet:"response_p95_us" json:"response_p95_us"` // 0 in runs of 0.1
	ResponseP99  float64 `parquet:"response_p99_us" json:"response_p99_us"`
	ResponseP999 float64 `parquet:"response_p999_us" json:"response_p999_us"`
	ClientCPU    float64 `parquet:"client_cpu_cores" json:"client_cpu_cores"`
	InFlight     int64   `parquet:"in_flight" json:"in_flight"`
	// Stolen is the time during which the driver waited for a processor that another program had.
	Stolen float64 `parquet:"stolen_s" json:"stolen_s,omitempty"`
}

// PoolSecond is one row of pools.parquet, which exists if several workloads run side by side.
type PoolSecond struct {
	Pool string `parquet:"pool,dict" json:"pool"`
	Second
}

// ErrorSecond is one row of errors.parquet: operations of one kind that did not end ok in one second, for one reason.
type ErrorSecond struct {
	T         int64  `parquet:"t" json:"t"`
	Operation string `parquet:"operation,dict" json:"operation"`
	Outcome   string `parquet:"outcome,dict" json:"outcome"` // failed or unknown
	Class     string `parquet:"class,dict" json:"class"`
	Node      string `parquet:"node,dict" json:"node,omitempty"`
	Count     int64  `parquet:"count" json:"count"`
}

// WriteSlot is the time resolution of acknowledged writes in the seconds of a driver.
const WriteSlot = 10 * time.Millisecond

// OperationSecond is one kind of operation in one second: those that ended ok, and their response times. It feeds the
// live view; afterwards the histograms have the same data.
type OperationSecond struct {
	T         int64   `json:"t"`
	Operation string  `json:"operation"`
	OK        int64   `json:"ok"`
	P50       float64 `json:"p50_us"`
	P95       float64 `json:"p95_us"`
	P99       float64 `json:"p99_us"`
}

// NetworkSecond is one row of network.parquet: the round trips between the nodes in one second, if an overlay routes
// packets; otherwise over real links only.
type NetworkSecond struct {
	T int64 `parquet:"t" json:"t"`
	// Mean and Worst round trip over all pairs of nodes, or real links, that answered.
	Mean  float64 `parquet:"rtt_mean_ms" json:"rtt_mean_ms"`
	Worst float64 `parquet:"rtt_worst_ms" json:"rtt_worst_ms"`
	// Pairs is the number of probed pairs; Unreachable of them did not answer.
	Pairs       int64 `parquet:"pairs" json:"pairs"`
	Unreachable int64 `parquet:"unreachable" json:"unreachable"`
}

// LinkSecond is one row of links.parquet: the measurement of one real link in one second.
type LinkSecond struct {
	T    int64  `parquet:"t" json:"t"`
	Link string `parquet:"link,dict" json:"link"`
	// Sent and Lost count echoes; the round trips are 0 if none returned.
	Sent   int64   `parquet:"sent" json:"sent"`
	Lost   int64   `parquet:"lost" json:"lost"`
	Min    float64 `parquet:"rtt_min_ms" json:"rtt_min_ms"`
	Median float64 `parquet:"rtt_median_ms" json:"rtt_median_ms"`
	Max    float64 `parquet:"rtt_max_ms" json:"rtt_max_ms"`
}

// NodeSecond is one row of nodes.parquet: one node in one second. The nodes "@emulator", "@host" and "@wireguard" are
// the emulator, the machine and the process of encrypted links.
type NodeSecond struct {
	T          int64   `parquet:"t" json:"t"`
	Node       string  `parquet:"node,dict" json:"node"`
	CPU        float64 `parquet:"cpu_cores" json:"cpu_cores"`
	Throttled  float64 `parquet:"throttled_cores" json:"throttled_cores"`
	Memory     int64   `parquet:"memory_bytes" json:"memory_bytes"`
	ReadBytes  int64   `parquet:"read_bytes" json:"read_bytes"`
	WroteBytes int64   `parquet:"wrote_bytes" json:"wrote_bytes"`
	RxBytes    int64   `parquet:"rx_bytes" json:"rx_bytes"`
	TxBytes    int64   `parquet:"tx_bytes" json:"tx_bytes"`
	// User and System are parts of CPU. Steal is CPU time that neighbours of the node's flavor, or the machine's
	// hypervisor, withheld. Credits is the balance of a flavor with CPU credits. Foreign is the machine's CPU time that
	// processes outside the trial used.
	User    float64  `parquet:"user_cores" json:"user_cores"`
	System  float64  `parquet:"system_cores" json:"system_cores"`
	Steal   float64  `parquet:"steal_cores" json:"steal_cores"`
	Credits *float64 `parquet:"credits,optional" json:"credits,omitempty"`
	Foreign float64  `parquet:"foreign_cores" json:"foreign_cores,omitempty"`
	// ProcessorWait sums, over the node's threads, the time ready to run but waiting for a processor. DiskWait is the
	// part of the second in which at least one thread waited for a disk.
	ProcessorWait float64 `parquet:"processor_wait_s" json:"processor_wait_s,omitempty"`
	DiskWait      float64 `parquet:"disk_wait_s" json:"disk_wait_s,omitempty"`
}

// DirectionSecond is one row of directions.parquet: one direction of a link in one second of the measurement in which
// it carried, dropped or queued packets.
type DirectionSecond struct {
	T    int64  `parquet:"t" json:"t"`
	Link string `parquet:"link,dict" json:"link"`
	From string `parquet:"from,dict" json:"from"` // node
	To   string `parquet:"to,dict" json:"to"`     // node
	// Delivered packets and bytes, and packets dropped by a full queue, or as loss or because the link was down.
	Packets      int64 `parquet:"packets" json:"packets"`
	Bytes        int64 `parquet:"bytes" json:"bytes"`
	DroppedQueue int64 `parquet:"dropped_queue" json:"dropped_queue"`
	DroppedLoss  int64 `parquet:"dropped_loss" json:"dropped_loss"`
	// Settings in force at the end of the second. BPS is 0 without a limit.
	SetLatency float64 `parquet:"set_latency_ms" json:"set_latency_ms"`
	SetJitter  float64 `parquet:"set_jitter_ms" json:"set_jitter_ms"`
	SetBPS     int64   `parquet:"set_bps" json:"set_bps"`
	SetDown    bool    `parquet:"set_down" json:"set_down"`
	// Observed is false if the engine does not see packets (netem); the columns below are 0 then.
	Observed bool `parquet:"observed" json:"observed"`
	// Waiting bytes are in the queue at the end of the second; flying packets have left it.
	Waiting int64 `parquet:"waiting_bytes" json:"waiting_bytes"`
	Flying  int64 `parquet:"flying_packets" json:"flying_packets"`
	// Delay is the time from arrival to delivery. Queued is its part until the last bit left the wire.
	DelayMean float64 `parquet:"delay_mean_ms" json:"delay_mean_ms"`
	DelayP50  float64 `parquet:"delay_p50_ms" json:"delay_p50_ms"`
	DelayP99  float64 `parquet:"delay_p99_ms" json:"delay_p99_ms"`
	Queued    float64 `parquet:"queued_mean_ms" json:"queued_mean_ms"`
	// Spread is the delay without queueing and latency: jitter and the emulator's lateness.
	SpreadMean float64 `parquet:"spread_mean_ms" json:"spread_mean_ms"`
	SpreadSD   float64 `parquet:"spread_sd_ms" json:"spread_sd_ms"`
	// Changes of the settings in this second.
	Changes int64 `parquet:"changes" json:"changes"`
	// Packets that broke a law; see LawEarly.
	Early int64 `parquet:"early" json:"early"`
	Late  int64 `parquet:"late" json:"late"`
	Fast  int64 `parquet:"fast" json:"fast"`
	Slow  int64 `parquet:"slow" json:"slow"`
}

// rowGroup is the number of rows in memory before a write: half a minute of a thousand nodes.
const rowGroup = 32 << 10

var errClosed = errors.New("the trial has ended")

type table[T any] struct {
	file *os.File
	rows *parquet.GenericWriter[T]
}

func newTable[T any](path string) (*table[T], error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &table[T]{f, parquet.NewGenericWriter[T](f,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault, Concurrency: 1}),
		parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("skerry", "", ""))}, nil
}

func (t *table[T]) add(rows ...T) error {
	if t == nil {
		return errClosed
	}
	_, err := t.rows.Write(rows)
	return err
}

func (t *table[T]) close() error {
	return errors.Join(t.rows.Close(), t.file.Sync(), t.file.Close())
}

// readTable reads a whole parquet file. The library panics on some corrupt files; a panic is reported as ErrDamaged.
func readTable[T any](path string) (rows []T, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("%s: %w: %v", path, ErrDamaged, p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if rows, err = readRows[T](f, st.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return rows, nil
}

// readRows reads in chunks, so that a false row count in a corrupt file costs no memory.
func readRows[T any](f io.ReaderAt, size int64) (rows []T, err error) {
	file, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	r := parquet.NewGenericReader[T](file)
	defer func() { err = errors.Join(err, r.Close()) }()
	chunk := make([]T, 1024)
	for {
		n, err := r.Read(chunk)
		rows = append(rows, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrNoProgress
		}
	}
}
