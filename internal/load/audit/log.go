// Package audit records every write of a drive and judges later reads. It finds lost acknowledged
// writes and values that no write explains.
//
// Every value carries the version of its write. A Ledger keeps, for each field of each record, the
// versions that are allowed in the end. A Record judges the values read.
//
//	      w1 ├──┤ acknowledged
//	             w2 ├────┤ acknowledged: began after the end of w1, so w1 is superseded
//	                w3 ├──────┤ acknowledged, concurrent with w2: either may be last
//	              w4 ├─────── ? in doubt: may be visible or not, now or later
//	─────────────────────────────────► time      allowed: w2, w3, w4
package audit

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"time"

	"skerry/internal/load/ycsb"
)

// Version identifies a write: its worker and the worker's sequence number from 1. Version 0 is the
// load phase.
type Version uint64

const (
	sequenceBits = 31
	workerBits   = 17
	maxSequence  = 1<<sequenceBits - 1
	maxWorker    = 1<<workerBits - 1
)

// tagSize is the size of a version within a value, in bytes: 8 digits of the version and 6 of a
// checksum. Each digit has 6 bits, so that the value remains text.
const tagSize = 14

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"

// digitOf is the value of a digit, 0xFF for other bytes.
var digitOf = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	for i := range len(digits) {
		t[digits[i]] = byte(i)
	}
	return t
}()

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the record, the field, the version and the rest of the value. It detects values
// that were cut, damaged or mixed up with another field's.
func checksum(number int64, field int, v Version, rest []byte) uint32 {
	const odd = 0x9e3779b97f4a7c15 // Fibonacci hashing: the high bits depend on all input bits
	of := (uint64(number)*odd ^ uint64(v)<<8 ^ uint64(field)) * odd
	return crc32.Update(0, castagnoli, rest) ^ uint32(of>>32)
}

func writeTag(value []byte, number int64, field int, v Version) {
	tag := value[:tagSize]
	encodeDigits(tag[:8], uint64(v))
	encodeDigits(tag[8:], uint64(checksum(number, field, v, value[tagSize:])))
}

func encodeDigits(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = digits[n&63]
		n >>= 6
	}
}

func decodeDigits(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		d := digitOf[c]
		if d == 0xFF {
			return 0, false
		}
		n = n<<6 | uint64(d)
	}
	return n, true
}

// readTag returns the version of a value, or false if the value has no valid version for this
// record and field.
func readTag(value []byte, number int64, field int) (Version, bool) {
	if len(value) < tagSize {
		return 0, false
	}
	v, ok := decodeDigits(value[:8])
	sum, okSum := decodeDigits(value[8:tagSize])
	return Version(v), ok && okSum && sum == uint64(checksum(number, field, Version(v), value[tagSize:]))
}

// String returns the version as "worker.number".
func (v Version) String() string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%d.%d", v>>sequenceBits, v&maxSequence)
}

// Log records the writes of a drive on disk as they end, in 32 bytes each. Ledger.AddLog orders
// them after the drive, so that the measurement does not pay for it.
type Log struct {
	fields     map[string]int
	fieldCount int

	mu      sync.Mutex
	file    *os.File // guarded by mu
	err     error    // guarded by mu: the first error
	writers []*Writer
}

// A log entry has four words: number; version with field, outcome and gone flag; start; end.
const (
	entrySize = 32
	fieldAt   = 48 // bits of the second word
	flagsAt   = 56
	goneFlag  = 1 << 7
)

const bufferSize = 512 * entrySize

func NewLog(path string, w ycsb.Workload) (*Log, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create the log of writes: %w", err)
	}
	l := &Log{fields: map[string]int{}, file: f, fieldCount: w.Fields}
	for i, n := range w.FieldNames() {
		l.fields[n] = i
	}
	return l, nil
}

func (l *Log) write(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(b); err != nil && l.err == nil {
		l.err = fmt.Errorf("append to the log of writes: %w", err)
	}
}

// Close completes the file. No Writer may be in use.
func (l *Log) Close() error {
	for _, w := range l.writers {
		l.write(w.buffer)
		w.buffer = nil
	}
	return errors.Join(l.err, l.file.Close())
}

// Writer records the writes of one worker. It is not safe for concurrent use.
type Writer struct {
	log      *Log
	worker   Version
	sequence Version
	current  Write // in progress
	buffer   []byte
}

// Writer returns a Writer for a worker, numbered from 0.
func (l *Log) Writer(worker int) *Writer {
	w := &Writer{log: l, worker: Version(worker&maxWorker) << sequenceBits}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writers = append(l.writers, w)
	return w
}

// Stamp begins a write and puts a new version into every value.
func (w *Writer) Stamp(number int64, values []ycsb.Field) {
	w.beginWrite(number)
	if len(values) == w.log.fieldCount {
		writeTags(number, values, w.current.Version)
		return
	}
	for i := range values {
		w.current.Field = w.log.fields[values[i].Name]
		writeTag(values[i].Value, number, w.current.Field, w.current.Version)
	}
}

func (w *Writer) beginWrite(number int64) {
	w.sequence++
	w.current.Number, w.current.Version, w.current.Field, w.current.Gone = number, w.worker|w.sequence&maxSequence, AllFields, false
}

// StampLoaded puts version 0 into the values of a record of the load phase, which must be all of
// its fields.
func StampLoaded(number int64, values []ycsb.Field) { writeTags(number, values, 0) }

func writeTags(number int64, values []ycsb.Field, v Version) {
	for i := range values {
		writeTag(values[i].Value, number, i, v)
	}
}

// End records the outcome of the current write. Times are those of one clock.
func (w *Writer) End(start, end time.Duration, o Outcome) {
	w.buffer = w.current.encode(w.buffer, start, end, o)
	if len(w.buffer) >= bufferSize {
		w.log.write(w.buffer)
		w.buffer = w.buffer[:0]
	}
}

// Abandon records the current write as in doubt, for a stuck worker. Another goroutine calls it.
func (w *Writer) Abandon(start time.Duration) {
	w.log.write(w.current.encode(nil, start, start, InDoubt))
}

// Current is the write in progress, or the last one.
func (w *Writer) Current() Write { return w.current }

func (x *Write) encode(b []byte, start, end time.Duration, o Outcome) []byte {
	flags := uint64(o)
	if x.Gone {
		flags |= goneFlag
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(x.Number))
	b = binary.LittleEndian.AppendUint64(b, uint64(x.Version)|uint64(x.Field)<<fieldAt|flags<<flagsAt)
	b = binary.LittleEndian.AppendUint64(b, uint64(start))
	return binary.LittleEndian.AppendUint64(b, uint64(end))
}

// AddLog adds the writes of a closed log, and removes the log.
func (l *Ledger) AddLog(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the log of writes: %w", err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<18)
	var b [entrySize]byte
	for {
		_, err := io.ReadFull(r, b[:])
		if errors.Is(err, io.EOF) {
			return os.Remove(path)
		}
		if err != nil {
			return fmt.Errorf("read the log of writes: %w", err)
		}
		mark := binary.LittleEndian.Uint64(b[8:])
		flags := byte(mark >> flagsAt)
		l.add(int64(binary.LittleEndian.Uint64(b[:])), node{
			version: Version(mark & (1<<fieldAt - 1)), field: uint8(mark >> fieldAt), outcome: Outcome(flags &^ goneFlag), gone: flags&goneFlag != 0,
			start: int64(binary.LittleEndian.Uint64(b[16:])), end: int64(binary.LittleEndian.Uint64(b[24:])),
		})
	}
}
