package audit

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
)

// Outcome is the outcome of a write.
type Outcome uint8

const (
	Acknowledged Outcome = iota
	InDoubt              // it may have happened, or may still happen
	Refused              // it certainly did not happen
)

// Counts counts writes by outcome, including those of the warm-up.
type Counts struct {
	Acknowledged int64 `json:"acknowledged"`
	InDoubt      int64 `json:"in_doubt"`
	Refused      int64 `json:"refused"`
}

// AllFields is the field number of a write to every field.
const AllFields = 0xFF

// MaxFields is the maximum number of fields of a record.
const MaxFields = AllFields

// maxRefused bounds the memory for refused writes in an outage: 1,000,000 take 32 MB. Further
// refused writes are not stored; if one is read back, it looks like an older version.
const maxRefused = 1_000_000

// Ledger holds, for each record, the writes that may be visible in the end.
type Ledger struct {
	first  int64 // number of the first record
	loaded int64 // number of records that the load phase wrote
	names  []string
	// heads are the first nodes of the records' lists, plus 1; 0 for none.
	heads []uint32
	// chunks hold the nodes, so that growing does not copy them.
	chunks [][]node
	used   uint32
	free   uint32 // list of free nodes, plus 1

	counts [3]int64 // by Outcome
}

// NewLedger returns a ledger of a table that was loaded with w.
func NewLedger(w ycsb.Workload) *Ledger {
	return &Ledger{first: w.InsertStart, loaded: w.InsertCount, names: w.FieldNames()}
}

// Counts returns the number of writes by outcome.
func (l *Ledger) Counts() Counts {
	return Counts{Acknowledged: l.counts[Acknowledged], InDoubt: l.counts[InDoubt], Refused: l.counts[Refused]}
}

// node is a write that may be visible, or must not be.
type node struct {
	version    Version
	start, end int64 // ns of the driver's clock
	next       uint32
	field      uint8
	outcome    Outcome
	gone       bool // it deleted the record
}

const chunk = 1 << 12

func (l *Ledger) at(i uint32) *node { return &l.chunks[(i-1)/chunk][(i-1)%chunk] }

func (l *Ledger) allocNode() uint32 {
	if i := l.free; i != 0 {
		l.free = l.at(i).next
		return i
	}
	if l.used%chunk == 0 {
		l.chunks = append(l.chunks, make([]node, chunk))
	}
	l.used++
	return l.used
}

// add adds a write to a record's list and removes the writes that it supersedes. Writes arrive in
// any order.
func (l *Ledger) add(number int64, n node) {
	l.counts[n.outcome]++
	if n.outcome == Refused && l.counts[Refused] > maxRefused {
		return
	}
	slot := number - l.first
	for slot >= int64(len(l.heads)) {
		l.heads = append(l.heads, 0)
	}
	if n.outcome == Acknowledged {
		for link := &l.heads[slot]; *link != 0; {
			old := l.at(*link)
			if old.supersededBy(&n) {
				freed := *link
				*link = old.next
				old.next, l.free = l.free, freed
				continue
			}
			if n.supersededBy(old) {
				return
			}
			link = &old.next
		}
	}
	i := l.allocNode()
	n.next = l.heads[slot]
	*l.at(i) = n
	l.heads[slot] = i
}

// supersededBy reports whether o began after n had ended and wrote every field that n wrote.
func (n *node) supersededBy(o *node) bool {
	return n.outcome == Acknowledged && o.outcome == Acknowledged && n.end < o.start && (o.field == AllFields || o.field == n.field)
}

var errFile = errors.New("not a ledger of writes")

// Header is the first line of a ledger file.
type Header struct {
	Names   []string `json:"fields"`
	First   int64    `json:"first"`
	Loaded  int64    `json:"loaded"`
	Records int64    `json:"records"`
	Counts
	// Began is the start of the measurement, in nanoseconds of the driver's clock.
	Began int64 `json:"began_ns"`
}

// Save writes the ledger to a file: a line of JSON, then the records in the order of their numbers,
// with their writes as variable-length integers.
func (l *Ledger) Save(path string, began int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("save the ledger of writes: %w", err)
	}
	defer func() {
		if e := errors.Join(err, f.Close()); e != nil {
			err = fmt.Errorf("save the ledger of writes: %w", e)
		}
	}()
	h := Header{Names: l.names, First: l.first, Loaded: l.loaded, Records: l.records(), Counts: l.Counts(), Began: began}
	w := bufio.NewWriterSize(f, 1<<18)
	if err := json.NewEncoder(w).Encode(h); err != nil {
		return err
	}
	var b []byte
	for k := range h.Records {
		b = l.encode(b[:0], k)
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Flush()
}

// records is the number of records, up to the last one that was loaded or written.
func (l *Ledger) records() int64 { return max(l.loaded, int64(len(l.heads))) }

func (l *Ledger) encode(b []byte, k int64) []byte {
	head := uint32(0)
	if k < int64(len(l.heads)) {
		head = l.heads[k]
	}
	count := uint64(0)
	for i := head; i != 0; i = l.at(i).next {
		count++
	}
	b = binary.AppendUvarint(b, count)
	for i := head; i != 0; i = l.at(i).next {
		n := l.at(i)
		flags := byte(n.outcome)
		if n.gone {
			flags |= goneFlag
		}
		b = append(b, flags, n.field)
		b = binary.AppendUvarint(b, uint64(n.version))
		b = binary.AppendVarint(b, n.start)
		b = binary.AppendVarint(b, n.end-n.start)
	}
	return b
}

// File is a saved ledger.
type File struct {
	Header
	f    io.ReadCloser
	r    *bufio.Reader
	next int64
}

// Open opens a saved ledger. The end of ctx ends its reading.
func Open(ctx context.Context, from files.File) (*File, error) {
	f, err := from.On.Open(ctx, from.Path, 0)
	if err != nil {
		return nil, fmt.Errorf("open the ledger of writes: %w", err)
	}
	l := &File{f: f, r: bufio.NewReaderSize(f, 1<<18)}
	line, err := l.r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &l.Header)
	}
	if err == nil && (len(l.Names) == 0 || l.Records < 0) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %w", from.Path, errFile, err), f.Close())
	}
	return l, nil
}

func (l *File) Close() error { return l.f.Close() }

const maxWrites = 1 << 24

// Next returns the next record, or io.EOF after the last.
func (l *File) Next() (Record, error) {
	if l.next >= l.Records {
		return Record{}, io.EOF
	}
	r := Record{Number: l.First + l.next, Loaded: l.next < l.Loaded}
	l.next++
	n, err := binary.ReadUvarint(l.r)
	if err == nil && n > maxWrites {
		err = errors.New("too many writes")
	}
	for range n {
		var w Write
		if w, err = l.readWrite(r.Number); err != nil {
			break
		}
		r.Writes = append(r.Writes, w)
	}
	if err != nil {
		return r, fmt.Errorf("%w: record %d: %w", errFile, l.next, asUnexpectedEOF(err))
	}
	return r, nil
}

func (l *File) readWrite(number int64) (Write, error) {
	w := Write{Number: number}
	var flags [2]byte
	_, err := io.ReadFull(l.r, flags[:])
	version, errVersion := binary.ReadUvarint(l.r)
	start, errStart := binary.ReadVarint(l.r)
	took, errTook := binary.ReadVarint(l.r)
	w.Outcome, w.Gone, w.Field = Outcome(flags[0]&^goneFlag), flags[0]&goneFlag != 0, int(flags[1])
	w.Version, w.Start, w.End = Version(version), start, start+took
	return w, errors.Join(err, errVersion, errStart, errTook)
}

func asUnexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readVersions reads the versions of a record's fields, in the order of names. Absent fields are left
// out. ok is false if a value has no version.
func readVersions(names []string, number int64, got []ycsb.Field) (fields []int, versions []Version, ok bool) {
	for f, name := range names {
		for _, g := range got {
			if g.Name != name {
				continue
			}
			v, ok := readTag(g.Value, number, f)
			if !ok {
				return nil, nil, false
			}
			fields, versions = append(fields, f), append(versions, v)
		}
	}
	return fields, versions, true
}
