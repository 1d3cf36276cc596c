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

// Operation is one operation of a History.
type Operation struct {
	Worker int   `json:"worker"`
	Number int64 `json:"number"`
	Read   bool  `json:"read,omitempty"`
	// Call and Return are nanoseconds of the driver's clock. An Open one has no Return:
	// nobody knows whether it happened, nor when.
	Call   int64 `json:"call"`
	Return int64 `json:"return,omitempty"`
	Open   bool  `json:"open,omitempty"`
	// Fields were written, or read, with these Versions. Missing: the record was not there,
	// or is not any more.
	Fields   []int     `json:"fields,omitempty"`
	Versions []Version `json:"versions,omitempty"`
	Missing  bool      `json:"missing,omitempty"`
	// Strange says that a value was read that has no version.
	Strange bool `json:"strange,omitempty"`
	// Cut is no operation, but says of a record that its history ends before the workload.
	Cut bool `json:"cut,omitempty"`
}

// maxOperations of one record are kept: the check takes more than proportionally longer.
const maxOperations = 3000

// History keeps every operation on a few records, up to a moment for each of them.
type History struct {
	tracks map[int64]*track // not changed after NewHistory
	// sieve has the bit of each number's hash: most numbers fall through without a look.
	sieve uint64
}

// track is the history of one record. When it is full it is closed at a moment: what was
// read later is left out, and of writes all are known that had begun by then.
type track struct {
	mu     sync.Mutex
	ops    []Operation
	closed int64 // ns, 0 while it is open
}

// NewHistory watches records.
func NewHistory(numbers []int64) *History {
	h := &History{tracks: map[int64]*track{}}
	for _, n := range numbers {
		h.tracks[n] = &track{}
		h.sieve |= sieveBit(n)
	}
	return h
}

// Watches tells whether a record is watched; nil watches none.
func (h *History) Watches(number int64) bool {
	return h != nil && h.sieve&sieveBit(number) != 0 && h.tracks[number] != nil
}

func sieveBit(n int64) uint64 { return 1 << (uint64(n) * 0x9e3779b97f4a7c15 >> 58) }

// Add takes an operation on a record that is watched, once it has ended.
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

// Save writes the history to a file, an operation a line. No operation may be under way.
func (h *History) Save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keeping the history: %w", err)
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
		return fmt.Errorf("keeping the history: %w", err)
	}
	return nil
}

// cut returns the operations up to the moment at which the track was closed. A read that
// ended later might have seen writes that are not known; a write that did was seen or not.
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

// ReadHistory reads what Save wrote to a file, in the order of calls, and appends what was read of the
// records after the workload, one read after the other. Reads of a record whose history was cut
// are left out: they may have seen writes that are not known.
func ReadHistory(ctx context.Context, from files.File, after []Operation) ([]Operation, error) {
	f, err := from.On.Open(ctx, from.Path, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
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
			return out, fmt.Errorf("reading the history: %w", err)
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

// SetRead fills in what a read returned: got, or that there is no such record, which err is then.
// It is false for any other error, of which nothing follows.
func (o *Operation) SetRead(names []string, got []ycsb.Field, err, notFound error) bool {
	switch {
	case errors.Is(err, notFound):
		o.Missing = true
	case err != nil:
		return false
	default:
		var ok bool
		o.Fields, o.Versions, ok = Versions(names, o.Number, got)
		o.Strange = !ok
	}
	return true
}
