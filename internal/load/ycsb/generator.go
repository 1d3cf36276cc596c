package ycsb

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// Source is the state of a workload that its workers share.
type Source struct {
	w        *Workload
	seed     uint64
	inserts  *Inserts
	sequence atomic.Int64
}

// NewSource returns a source. The same seed gives the same operations.
func NewSource(w Workload, seed uint64) *Source {
	return &Source{w: &w, seed: seed, inserts: newInserts(w.RecordCount)}
}

// Inserts returns the numbering of inserted records.
func (s *Source) Inserts() *Inserts { return s.inserts }

// Op is one operation. All fields but Key are valid until the generator's next operation.
type Op struct {
	Kind   Kind
	Number int64 // of the record
	Key    string
	Fields []string // to read; nil for all
	Values []Field  // to write
	Length int      // of a scan, in records
}

// Generator generates a worker's operations.
type Generator struct {
	source *Source
	w      *Workload
	keys   chooser
	arena  keyArena
	names  []string

	// mix holds cumulative shares: a draw below the first is a read, and so on.
	mix     [Kinds]float64
	field   lengths
	scan    lengths
	values  []Field
	buffer  []byte // backing array of values
	scratch []byte
	op      Op
}

func (s *Source) NewGenerator() *Generator {
	g := &Generator{
		source: s, w: s.w, keys: newChooser(s.w, s.inserts, &s.sequence), names: s.w.FieldNames(),
		field: newLengths(s.w.FieldLength), scan: newLengths(s.w.ScanLength),
	}
	m := s.w.Mix
	sum := 0.0
	for k, weight := range [Kinds]float64{m.Read, m.Update, m.Insert, m.Scan, m.ReadModifyWrite, m.Delete} {
		sum += weight / m.Total()
		g.mix[k] = sum
	}
	g.values = make([]Field, s.w.Fields)
	return g
}

// Next returns the workload's n-th operation.
func (g *Generator) Next(n uint64) *Op {
	r := NewRand(g.source.seed, n)
	g.op = Op{Kind: g.kind(r.Float64())}
	if g.op.Kind == Delete {
		if number, ok := g.chooseDelete(&r); ok {
			g.op.Number, g.op.Key = number, g.arena.key(g.w, number)
			return &g.op
		}
		g.op.Kind = Insert
	}
	if g.op.Kind == Insert {
		g.write(&r, g.source.inserts.Next(), true)
		return &g.op
	}
	g.op.Number = g.keys.draw(&r)
	g.op.Key = g.arena.key(g.w, g.op.Number)
	switch g.op.Kind {
	case Read:
		g.fields(&r)
	case Scan:
		g.fields(&r)
		g.op.Length = int(g.scan.draw(&r))
	case ReadModifyWrite:
		g.fields(&r)
		g.write(&r, g.op.Number, g.w.WriteAllFields)
	case Update:
		g.write(&r, g.op.Number, g.w.WriteAllFields)
	}
	return &g.op
}

// chooseDelete chooses a record to delete, which requests then no longer choose. It returns false
// while half of the records are deleted: an insert replaces the delete, so that a table never
// becomes empty.
func (g *Generator) chooseDelete(r *Rand) (number int64, ok bool) {
	for !g.source.inserts.scarce(g.w.RecordCount / 2) {
		if number = g.keys.draw(r); g.source.inserts.Remove(number) {
			return number, true
		}
	}
	return 0, false
}

// Kind returns the kind of the n-th operation.
func (g *Generator) Kind(n uint64) Kind {
	r := NewRand(g.source.seed, n)
	return g.kind(r.Float64())
}

// Load returns the n-th insert of the load phase.
func (g *Generator) Load(n uint64) *Op {
	r := NewRand(g.source.seed, n)
	g.op = Op{Kind: Insert}
	g.write(&r, g.w.InsertStart+int64(n), true)
	return &g.op
}

func (g *Generator) kind(u float64) Kind {
	last := Read
	for k := Read; k < Kinds; k++ {
		if u < g.mix[k] {
			return k
		}
		if k > 0 && g.mix[k] > g.mix[k-1] {
			last = k
		}
	}
	return last // rounding can leave the sum slightly below 1
}

func (g *Generator) fields(r *Rand) {
	switch {
	case !g.w.ReadAllFields:
		i := r.Int64N(int64(len(g.names)))
		g.op.Fields = g.names[i : i+1]
	case g.w.DataIntegrity || g.w.ReadByName:
		g.op.Fields = g.names
	}
}

func (g *Generator) write(r *Rand, number int64, all bool) {
	g.op.Number = number
	if g.op.Key == "" {
		g.op.Key = g.arena.key(g.w, number)
	}
	names := g.names
	if !all {
		i := r.Int64N(int64(len(names)))
		names = names[i : i+1]
	}
	g.buffer = g.buffer[:0]
	for i, name := range names {
		size := int(g.field.draw(r))
		from := len(g.buffer)
		if g.w.DataIntegrity {
			g.buffer = appendValue(g.buffer, g.op.Key, name, size)
		} else {
			g.buffer = extendBuffer(g.buffer, size)
			r.Text(g.buffer[from:])
		}
		// If the buffer moves, earlier values keep the old one.
		g.values[i] = Field{name, g.buffer[from:len(g.buffer):len(g.buffer)]}
	}
	g.op.Values = g.values[:len(names)]
}

// extendBuffer lengthens b by n bytes of arbitrary content.
func extendBuffer(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, 2*(len(b)+n)), b...)
	}
	return b[:len(b)+n]
}

// Rand is wyrand, a generator with 64 bits of state that is cheap to seed for every operation. So the
// n-th operation depends on the seed and n only, not on the number of workers. It is not
// suitable for cryptography.
type Rand struct{ state uint64 }

const (
	wyStep = 0xa0761d6478bd642f
	wyMask = 0xe7037ed1a0b428db
)

// NewRand returns the n-th stream of a seed.
func NewRand(seed, n uint64) Rand {
	return Rand{mix(seed ^ mix(n+0x9e3779b97f4a7c15))}
}

// mix is the finaliser of splitmix64: every input bit affects half of the output bits.
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

func (r *Rand) Uint64() uint64 {
	r.state += wyStep
	hi, lo := bits.Mul64(r.state, r.state^wyMask)
	return hi ^ lo
}

// Float64 is uniform in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) * 0x1p-53 }

// Int64N is uniform in [0, n) for n > 0, with a bias below n / 2^64.
func (r *Rand) Int64N(n int64) int64 {
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int64(hi)
}

// Text fills b with 64 different ASCII characters, from space to underscore. This gives six random
// bits per byte, which hardly compress and are valid in any encoding.
func (r *Rand) Text(b []byte) {
	const low6, space = 0x3f3f3f3f3f3f3f3f, 0x2020202020202020
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, r.Uint64()&low6+space)
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], r.Uint64()&low6+space)
		copy(b, last[:])
	}
}
