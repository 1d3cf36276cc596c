// Package metabench measures the metadata service, beside HDFS' NameNode on the same
// machine with the same durability, and its tree beside a chain of locks.
package metabench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Options say what is measured.
type Options struct {
	Exe      string        // the skerry program, whose server is measured
	Clients  int           // that ask at the same time
	Duration time.Duration // of each measurement
	Dirs     int           // that recovery reads
	Memory   int           // directories whose memory is measured
	Entries  int           // of the directory in parts that is filled; 0: none is
	Share    float64       // of a processor that a server of such a directory has, beside as many as there are; 0: only those
	Dir      string        // scratch; "" for the system's
	Only     []string      // parts; none for all
	Progress func(string)
}

// Parts are what Only can name.
var Parts = []string{"http", "local", "memory", "locks", "recovery", "takeover", "hot", "hdfs"}

// ErrPart marks an unknown part.
var ErrPart = errors.New("no such part of the benchmark")

// Result is what was measured: operations per second where nothing else is said. What was
// not measured is zero.
type Result struct {
	Cores   int    `json:"cores"`
	Kernel  string `json:"kernel"`
	Clients int    `json:"clients"`
	// Load is the machine's load average (1 min) before and after.
	Load [2]float64 `json:"load"`

	HTTP struct {
		Mkdir        float64 `json:"mkdir_s"`
		List         float64 `json:"ls_s"`           // of a directory of ten
		ListBeside   float64 `json:"ls_beside_s"`    // while one client makes directories
		MkdirsBeside float64 `json:"mkdir_beside_s"` // by that client
	} `json:"http"`
	Local struct {
		Mkdir float64 `json:"mkdir_s"` // durable
		Stat  float64 `json:"stat_s"`
	} `json:"local"`
	Memory struct {
		Dirs   int     `json:"dirs"`
		PerDir float64 `json:"bytes_per_dir"` // beside the name
	} `json:"memory"`
	Locks    []Shared `json:"locks,omitempty"`
	Recovery struct {
		Dirs     int     `json:"dirs"`
		Seconds  float64 `json:"seconds"` // from the start of the program to its first answer
		Resident int64   `json:"resident_bytes"`
	} `json:"recovery"`
	Takeover Takeover `json:"takeover"`
	Hot      Hot      `json:"hot"`
	HDFS     *HDFS    `json:"hdfs,omitempty"`
}

// Shared is how many threads read below one root at once, and what they got done.
type Shared struct {
	Threads     int     `json:"threads"`
	Tree        float64 `json:"tree_s"`
	Chain       float64 `json:"chain_s"`
	TreeBeside  float64 `json:"tree_beside_s"` // while another thread makes directories there
	ChainBeside float64 `json:"chain_beside_s"`
}

// Run measures.
func Run(ctx context.Context, o Options) (Result, error) {
	for _, part := range o.Only {
		if !slices.Contains(Parts, part) {
			return Result{}, fmt.Errorf("%q: %w", part, ErrPart)
		}
	}
	r := Result{Cores: runtime.NumCPU(), Clients: o.Clients, Kernel: kernel()}
	r.Load[0] = load()
	dir, err := os.MkdirTemp(o.Dir, "skerry-metabench-")
	if err != nil {
		return r, err
	}
	b := &bench{Options: o, scratch: dir, r: &r}
	for i, part := range []func(context.Context) error{b.http, b.local, b.memory, b.locks, b.recovery, b.takeover, b.hot, b.hdfs} {
		if len(o.Only) > 0 && !slices.Contains(o.Only, Parts[i]) {
			continue
		}
		if err := part(ctx); err != nil {
			return r, errors.Join(fmt.Errorf("measuring %s: %w", Parts[i], err), os.RemoveAll(dir))
		}
	}
	r.Load[1] = load()
	return r, os.RemoveAll(dir)
}

// bench is a measurement under way.
type bench struct {
	Options
	scratch string
	r       *Result
}

func (b *bench) say(format string, args ...any) {
	if b.Progress != nil {
		b.Progress(fmt.Sprintf(format, args...))
	}
}

// room is a new folder in the scratch space.
func (b *bench) room(name string) string { return filepath.Join(b.scratch, name) }

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// load is the machine's load average over a minute, -1 where it is not known.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	var l float64
	if _, err := fmt.Sscan(string(text), &l); err != nil {
		return -1
	}
	return l
}
