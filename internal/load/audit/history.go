package audit

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
)

type Operation struct {
	Worker int   `json:"worker"`
	Number int64 `json:"number"`
	Read   bool  `json:"read,omitempty"`
	// Call and Return are nanoseconds of the driver's clock. An Open operation has no Return: it
	// may have happened at any time after Call, or not at all.
	Call   int64 `json:"call"`
	Return int64 `json:"return,omitempty"`
	Open   bool  `json:"open,omitempty"`
	// Fields were written or read with these Versions. Missing means that the record does not exist.
	Fields   []int     `json:"fields,omitempty"`
	Versions []Version `json:"versions,omitempty"`
	Missing  bool      `json:"missing,omitempty"`
	// Strange means that a value without a version was read.
	Strange bool `json:"strange,omitempty"`
	// Cut marks a record whose history ends before the workload. It is not an operation.
	Cut bool `json:"cut,omitempty"`
}

// maxOperations bounds the history of a record, since the cost of the check grows faster than the
// history.
const maxOperations = 3000

// History records every operation on a few records.
type History struct {
	tracks map[int64]*track // read-only after NewHistory
	// sieve has a bit for the hash of each number. It rejects most numbers without a map access.
	sieve uint64
}

// track is the history of one record. A full track is closed at a point in time. Later reads are
// left out, but all writes that had begun by then are recorded.
type track struct {
	mu     sync.Mutex
	ops    []Operation
	closed int64 // ns, 0 while open
}

// NewHistory returns a history that watches the given records.
func NewHistory(numbers []int64) *History {
	h := &History{tracks: map[int64]*track{}}
	for _, n := range numbers {
		h.tracks[n] = &track{}
		h.sieve |= sieveBit(n)
	}
	return h
}

// Watches reports whether a record is watched. A nil History watches none.
func (h *History) Watches(number int64) bool {
	return h != nil && h.sieve&sieveBit(number) != 0 && h.tracks[number] != nil
}

func sieveBit(n int64) uint64 { return 1 << (uint64(n) * 0x9e3779b97f4a7c15 >> 58) }

// Add adds a completed operation on a watched record. It is safe for concurrent use.
func (h *History) Add(o Operation) {
	t := h.tracks[o.Number]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != 0 && (o.Read || o.Call > t.closed) {
		return
	}
	t.ops = append(t.ops, o)
	if t.closed == 0 && len(t.ops) >= maxOperations {
		t.closed = max(o.Call, o.Return)
	}
}

// Save writes the history to a file, one operation per line. No operation may be in progress.
func (h *History) Save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("save the history: %w", err)
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	for number, t := range h.tracks {
		for _, o := range t.cut() {
			err = errors.Join(err, e.Encode(o))
		}
		if t.closed != 0 {
			err = errors.Join(err, e.Encode(Operation{Number: number, Cut: true}))
		}
	}
	if err := errors.Join(err, w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("save the history: %w", err)
	}
	return nil
}

// cut returns the operations up to the closing time. A read that ended later is left out, since it
// may have seen unrecorded writes. A write that ended later becomes open.
func (t *track) cut() (out []Operation) {
	for _, o := range t.ops {
		if t.closed != 0 && (o.Call > t.closed || o.Return > t.closed) {
			if o.Read || o.Call > t.closed {
				continue
			}
			o.Open, o.Return = true, 0
		}
		out = append(out, o)
	}
	return out
}

// ReadHistory reads the output of Save in the order of calls. It appends the reads after the
// workload, one after the other, except those of cut records, which may have seen unrecorded
// writes.
func ReadHistory(ctx context.Context, from files.File, after []Operation) ([]Operation, error) {
	f, err := from.On.Open(ctx, from.Path, 0)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	defer f.Close()
	var out []Operation
	cut := map[int64]bool{}
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var o Operation
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, fmt.Errorf("read the history: %w", err)
		}
		if o.Cut {
			cut[o.Number] = true
			continue
		}
		out = append(out, o)
	}
	slices.SortStableFunc(out, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	end := int64(0)
	for _, o := range out {
		end = max(end, o.Call, o.Return)
	}
	for _, o := range after {
		if cut[o.Number] {
			continue
		}
		o.Call, o.Return = end+1, end+2
		end = o.Return
		out = append(out, o)
	}
	return out, nil
}

// SetRead sets the result of a read: got, or a missing record if err is notFound. It returns false
// for any other error, which proves nothing.
func (o *Operation) SetRead(names []string, got []ycsb.Field, err, notFound error) bool {
	switch {
	case errors.Is(err, notFound):
		o.Missing = true
	case err != nil:
		return false
	default:
		var ok bool
		o.Fields, o.Versions, ok = readVersions(names, o.Number, got)
		o.Strange = !ok
	}
	return true
}
