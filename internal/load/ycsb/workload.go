// Package ycsb is the semantics of the Yahoo! Cloud Serving Benchmark: which keys,
// fields and values a workload means, how operations and keys are drawn, its property
// files, and the text that other programs read. It does no I/O with databases.
//
// Facts about YCSB are of its release 0.17.0. Where it is known to be wrong, the doc
// comments here say what is done instead.
package ycsb

import (
	"embed"
	"strconv"
	"strings"
)

// Workload is a core workload as its properties describe it: plain data, complete,
// with YCSB's defaults filled in. Parse makes one.
type Workload struct {
	Table          string `json:"table"`
	RecordCount    int64  `json:"record_count"`
	OperationCount int64  `json:"operation_count"`
	// ExpectedOperations is the number of operations for which a zipfian workload that inserts draws its keys: the
	// operation count, or the record count where the properties have no operation count.
	ExpectedOperations int64 `json:"expected_operations"`
	// InsertStart and InsertCount bound the key numbers of the load phase, and of
	// the records that requests choose from.
	InsertStart int64 `json:"insert_start"`
	InsertCount int64 `json:"insert_count"`

	Fields        int    `json:"fields"`
	FieldPrefix   string `json:"field_prefix"`
	FieldLength   Length `json:"field_length"` // in bytes
	ReadAllFields bool   `json:"read_all_fields"`
	// ReadByName asks for all fields by their names, where ReadAllFields asks for a
	// record as it is.
	ReadByName     bool `json:"read_by_name"`
	WriteAllFields bool `json:"write_all_fields"`
	// DataIntegrity derives values from key and field, so that reads can be verified.
	DataIntegrity bool `json:"data_integrity"`

	Mix        Mix     `json:"mix"`
	Requests   Request `json:"requests"`
	ScanLength Length  `json:"scan_length"` // in records

	OrderedKeys bool `json:"ordered_keys"` // key number as it is, not hashed
	ZeroPadding int  `json:"zero_padding"` // digits in a key, at least
}

// Length is the distribution of a count: of a field's bytes or of a scan's records.
type Length struct {
	Distribution string `json:"distribution"` // constant, uniform, zipfian or histogram
	Min          int64  `json:"min"`
	Max          int64  `json:"max"`
	// Histogram: bucket i, drawn by its weight, stands for (i+1) x Block.
	Block   int64   `json:"block,omitempty"`
	Buckets []int64 `json:"buckets,omitempty"`
}

// Mix weighs the operations; the weights need not sum to 1.
type Mix struct {
	Read            float64 `json:"read"`
	Update          float64 `json:"update"`
	Insert          float64 `json:"insert"`
	Scan            float64 `json:"scan"`
	ReadModifyWrite float64 `json:"read_modify_write"`
	// Delete is none of YCSB's own: a record goes, and the next insert puts it back.
	Delete float64 `json:"delete,omitempty"`
}

// Total is the sum of the weights.
func (m Mix) Total() float64 {
	return m.Read + m.Update + m.Insert + m.Scan + m.ReadModifyWrite + m.Delete
}

// Request says how a request chooses its key.
type Request struct {
	Distribution string `json:"distribution"` // one of Distributions
	// HotData of the records get HotOperations of the operations (hotspot).
	HotData       float64 `json:"hot_data,omitempty"`
	HotOperations float64 `json:"hot_operations,omitempty"`
	// Percentile (0..100) of the operations fall on the Fraction of the records
	// inserted last (exponential).
	Percentile float64 `json:"percentile,omitempty"`
	Fraction   float64 `json:"fraction,omitempty"`
}

// Distributions of requests, by the names of requestdistribution.
const (
	Uniform     = "uniform"
	Zipfian     = "zipfian" // scrambled, as YCSB's: see ScrambledZipfian
	ZipfianTrue = "zipfian-true"
	Latest      = "latest"
	Hotspot     = "hotspot"
	Exponential = "exponential"
	Sequential  = "sequential"
)

// Distributions of lengths beside Uniform and Zipfian.
const (
	Constant  = "constant"
	Histogram = "histogram"
)

// Distributions lists what requestdistribution accepts.
func Distributions() []string {
	return []string{Uniform, Zipfian, ZipfianTrue, Latest, Hotspot, Exponential, Sequential}
}

// Kind is a kind of operation.
type Kind uint8

// Kinds of operation.
const (
	Read Kind = iota
	Update
	Insert
	Scan
	ReadModifyWrite
	Delete
	Kinds // how many there are
)

var kindNames = [...]string{"READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE", "DELETE"}

// String is the operation's name in YCSB's output.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "?"
}

// Uses tells which kinds a workload can draw, the inner reads and updates of
// read-modify-write included.
func (w *Workload) Uses(k Kind) bool {
	m := w.Mix
	switch k {
	case Read:
		return m.Read > 0 || m.ReadModifyWrite > 0
	case Update:
		return m.Update > 0 || m.ReadModifyWrite > 0
	case Insert:
		return m.Insert > 0
	case Scan:
		return m.Scan > 0
	case ReadModifyWrite:
		return m.ReadModifyWrite > 0
	case Delete:
		return m.Delete > 0
	}
	return false
}

// FieldNames are the names of a record's fields, in order.
func (w *Workload) FieldNames() []string {
	names := make([]string, w.Fields)
	for i := range names {
		names[i] = w.FieldPrefix + strconv.Itoa(i)
	}
	return names
}

// Field is one named value of a record.
type Field struct {
	Name  string
	Value []byte
}

//go:embed workloads
var workloads embed.FS

// BuiltinNames are the built-in workloads, YCSB's core workloads.
func BuiltinNames() []string { return []string{"a", "b", "c", "d", "e", "f"} }

// Builtin returns the properties of a core workload, by "a" or "workloada" in any case.
func Builtin(name string) (Properties, bool) {
	entries, ok := BuiltinEntries(name)
	return CollectEntries(entries), ok
}

// BuiltinEntries is Builtin for every setting with its line.
func BuiltinEntries(name string) ([]Entry, bool) {
	letter := strings.TrimPrefix(strings.ToLower(name), "workload")
	f, err := workloads.Open("workloads/workload" + letter)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	entries, err := ReadEntries(f)
	return entries, err == nil
}
