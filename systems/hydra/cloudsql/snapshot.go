package cloudsql

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"maps"
	"slices"

	"skerry/systems/hydra/command"
)

// A snapshot holds a database's rows as of one index:
//
//	"hydra snapshot 2\n" cluster log index count { table }
//	{ 'T' table { 'R' key version value } }
//	{ 'O' index request outcome }
//	'E' rows crc64
//
// Strings are preceded by their length; lengths and numbers are uvarints. The checksum is
// CRC-64/ECMA of all preceding bytes, 8 bytes big-endian.
const snapshotMagic = "hydra snapshot 2\n"

const maxText = 16 << 20

// Save writes a snapshot and returns its index. It is one read-only transaction; reads and applies continue.
func (s *Store) Save(ctx context.Context, w io.Writer) (index uint64, err error) {
	tx, err := s.beginSnapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // it only reads
	var p Progress
	if err := p.scan(tx.QueryRowContext(ctx, metaColumns)); err != nil {
		return 0, err
	}
	index = p.Applied
	names, err := s.listTables(ctx, tx)
	if err != nil {
		return 0, err
	}
	out := newWriter(w)
	out.raw([]byte(snapshotMagic))
	out.text(p.Cluster)
	out.text(p.Log)
	out.number(index)
	out.number(uint64(len(names)))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out.text(name)
	}
	var rows uint64
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out.tag('T')
		out.text(name)
		if err := s.scan(ctx, tx, name, Range{}, nil, func(r Row, _ sql.NullInt64) error {
			rows++
			out.tag('R')
			out.text(r.Key)
			out.number(r.Version)
			out.bytes(r.Value)
			return out.err
		}); err != nil {
			return 0, err
		}
	}
	if err := writeOutcomes(ctx, tx, out); err != nil {
		return 0, err
	}
	return index, out.end(rows)
}

func writeOutcomes(ctx context.Context, tx *sql.Tx, out *writer) error {
	rows, err := tx.QueryContext(ctx, "SELECT idx, request, outcome FROM hydra_outcomes WHERE request IS NOT NULL ORDER BY idx")
	if err != nil {
		return fmt.Errorf("reading hydra_outcomes: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var index uint64
		var request, text []byte
		if err := rows.Scan(&index, &request, &text); err != nil {
			return fmt.Errorf("reading hydra_outcomes: %w", err)
		}
		out.tag('O')
		out.number(index)
		out.bytes(request)
		out.bytes(text)
	}
	return rows.Err()
}

type writer struct {
	buf *bufio.Writer
	sum hash.Hash64
	err error
	num []byte
}

func newWriter(w io.Writer) *writer {
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	return &writer{buf: bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<18), sum: sum}
}

func (w *writer) raw(b []byte) {
	if w.err == nil {
		_, w.err = w.buf.Write(b)
	}
}

func (w *writer) tag(t byte)      { w.raw([]byte{t}) }
func (w *writer) text(s string)   { w.bytes([]byte(s)) }
func (w *writer) bytes(b []byte)  { w.number(uint64(len(b))); w.raw(b) }
func (w *writer) number(n uint64) { w.num = binary.AppendUvarint(w.num[:0], n); w.raw(w.num) }

func (w *writer) end(rows uint64) error {
	w.tag('E')
	w.number(rows)
	if w.err == nil {
		w.err = w.buf.Flush()
	}
	w.raw(binary.BigEndian.AppendUint64(nil, w.sum.Sum64()))
	if w.err == nil {
		w.err = w.buf.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("writing a snapshot: %w", w.err)
	}
	return nil
}

// Header is the start of a snapshot.
type Header struct {
	Cluster string
	Log     string // "" in version 1
	Index   uint64
	Tables  []string
}

// Visitor receives a snapshot's content in order. Nil functions are skipped.
type Visitor struct {
	Begin   func(h Header) error
	Table   func(name string) error
	Row     func(table string, r Row) error
	Outcome func(index uint64, request string, o command.Outcome) error
}

// ReadSnapshot reads a complete snapshot unless it returns an error, and its index. The visitor may keep row values.
func ReadSnapshot(r io.Reader, v Visitor) (index uint64, err error) {
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	in := &reader{r: bufio.NewReaderSize(r, 1<<18), sum: sum}
	h, err := in.header()
	if err != nil {
		return 0, err
	}
	index = h.Index
	if in.err == nil && v.Begin != nil {
		in.err = v.Begin(h)
	}
	var rows uint64
	var table string
	for in.err == nil {
		switch tag := in.raw(1); {
		case in.err != nil:
		case tag[0] == 'T':
			table = string(in.bytes())
			if in.err == nil && v.Table != nil {
				in.err = v.Table(table)
			}
		case tag[0] == 'R':
			rows++
			row := Row{Key: string(in.bytes()), Version: in.number(), Value: in.bytes()}
			if in.err == nil && v.Row != nil {
				in.err = v.Row(table, row)
			}
		case tag[0] == 'O':
			at, request, text := in.number(), string(in.bytes()), in.bytes()
			var o command.Outcome
			if in.err == nil {
				in.err = json.Unmarshal(text, &o)
			}
			if in.err == nil && v.Outcome != nil {
				in.err = v.Outcome(at, request, o)
			}
		case tag[0] == 'E':
			return index, in.end(rows)
		default:
			in.err = fmt.Errorf("%w: unknown part %q", ErrSnapshot, tag[0])
		}
	}
	if errors.Is(in.err, io.EOF) || errors.Is(in.err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("%w: truncated: %w", ErrSnapshot, in.err)
	}
	return 0, in.err
}

func (r *reader) header() (h Header, err error) {
	if string(r.raw(len(snapshotMagic))) != snapshotMagic {
		return h, fmt.Errorf("%w: unknown magic", ErrSnapshot)
	}
	h.Cluster, h.Log, h.Index = string(r.bytes()), string(r.bytes()), r.number()
	for range r.number() {
		if h.Tables = append(h.Tables, string(r.bytes())); r.err != nil {
			break
		}
	}
	return h, nil
}

type reader struct {
	r   *bufio.Reader
	sum hash.Hash64
	err error
}

func (r *reader) raw(n int) []byte {
	b := make([]byte, n)
	if r.err != nil {
		return b
	}
	if _, r.err = io.ReadFull(r.r, b); r.err == nil {
		r.sum.Write(b)
	}
	return b
}

func (r *reader) ReadByte() (byte, error) {
	b, err := r.r.ReadByte()
	if err == nil {
		r.sum.Write([]byte{b})
	}
	return b, err
}

func (r *reader) number() uint64 {
	if r.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(r)
	r.err = err
	return n
}

func (r *reader) bytes() []byte {
	n := r.number()
	if n > maxText && r.err == nil {
		r.err = fmt.Errorf("%w: string of %d bytes", ErrSnapshot, n)
	}
	if r.err != nil {
		return nil
	}
	return r.raw(int(n))
}

func (r *reader) end(rows uint64) error {
	if n := r.number(); r.err == nil && n != rows {
		return fmt.Errorf("%w: %d rows, want %d", ErrSnapshot, rows, n)
	}
	want := binary.BigEndian.AppendUint64(nil, r.sum.Sum64())
	if got := r.raw(len(want)); r.err == nil && string(got) != string(want) {
		return fmt.Errorf("%w: wrong checksum", ErrSnapshot)
	}
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, r.err)
	}
	return nil
}
