// Package ycsb implements the semantics of the Yahoo! Cloud Serving Benchmark, release 0.17.0:
// keys, fields and values, distributions, property files and text output. It does no I/O with
// databases. Doc comments say where it deviates from known mistakes of YCSB.
package ycsb

import (
	"embed"
	"strconv"
	"strings"
)

// Workload describes a core workload completely, with YCSB's defaults. Parse creates it.
type Workload struct {
	Table          string `json:"table"`
	RecordCount    int64  `json:"record_count"`
	OperationCount int64  `json:"operation_count"`
	// ExpectedOperations is the number of operations for which a zipfian workload that inserts
	// draws its keys. It is the operation count, or the record count if the properties have no
	// operation count.
	ExpectedOperations int64 `json:"expected_operations"`
	// InsertStart and InsertCount bound the key numbers of the load phase, and of the records that
	// requests choose.
	InsertStart int64 `json:"insert_start"`
	InsertCount int64 `json:"insert_count"`

	Fields        int    `json:"fields"`
	FieldPrefix   string `json:"field_prefix"`
	FieldLength   Length `json:"field_length"` // in bytes
	ReadAllFields bool   `json:"read_all_fields"`
	// ReadByName names all fields in reads, where ReadAllFields reads the record as a whole.
	ReadByName     bool `json:"read_by_name"`
	WriteAllFields bool `json:"write_all_fields"`
	// DataIntegrity derives values from key and field, so that reads can be verified.
	DataIntegrity bool `json:"data_integrity"`

	Mix        Mix     `json:"mix"`
	Requests   Request `json:"requests"`
	ScanLength Length  `json:"scan_length"` // in records

	OrderedKeys bool `json:"ordered_keys"` // key numbers are not hashed
	ZeroPadding int  `json:"zero_padding"` // minimum number of digits in a key
}

// Length is the distribution of a field's size in bytes, or of a scan's number of records.
type Length struct {
	Distribution string `json:"distribution"` // constant, uniform, zipfian or histogram
	Min          int64  `json:"min"`
	Max          int64  `json:"max"`
	// Bucket i of a histogram, drawn by its weight, stands for (i+1) x Block.
	Block   int64   `json:"block,omitempty"`
	Buckets []int64 `json:"buckets,omitempty"`
}

// Mix holds the weights of operations, which need not sum to 1.
type Mix struct {
	Read            float64 `json:"read"`
	Update          float64 `json:"update"`
	Insert          float64 `json:"insert"`
	Scan            float64 `json:"scan"`
	ReadModifyWrite float64 `json:"read_modify_write"`
	// Delete is Skerry's addition: it removes a record, and the next insert adds it again.
	Delete float64 `json:"delete,omitempty"`
}

func (m Mix) Total() float64 {
	return m.Read + m.Update + m.Insert + m.Scan + m.ReadModifyWrite + m.Delete
}

// Request is the distribution of requested keys.
type Request struct {
	Distribution string `json:"distribution"` // one of Distributions
	// HotData of the records get HotOperations of the operations (hotspot).
	HotData       float64 `json:"hot_data,omitempty"`
	HotOperations float64 `json:"hot_operations,omitempty"`
	// Percentile (0 to 100) of the operations request the Fraction of the records inserted last
	// (exponential).
	Percentile float64 `json:"percentile,omitempty"`
	Fraction   float64 `json:"fraction,omitempty"`
}

const (
	Uniform     = "uniform"
	Zipfian     = "zipfian" // scrambled, as in YCSB: see ScrambledZipf
	ZipfianTrue = "zipfian-true"
	Latest      = "latest"
	Hotspot     = "hotspot"
	Exponential = "exponential"
	Sequential  = "sequential"
)

const (
	Constant  = "constant"
	Histogram = "histogram"
)

func distributions() []string {
	return []string{Uniform, Zipfian, ZipfianTrue, Latest, Hotspot, Exponential, Sequential}
}

type Kind uint8

const (
	Read Kind = iota
	Update
	Insert
	Scan
	ReadModifyWrite
	Delete
	Kinds // number of kinds
)

var kindNames = [...]string{"READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE", "DELETE"}

// String returns the operation's name in YCSB's output.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "?"
}

// Uses reports whether a workload has operations of kind k, including the parts of
// read-modify-writes.
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

// FieldNames returns the names of a record's fields, in order.
func (w *Workload) FieldNames() []string {
	names := make([]string, w.Fields)
	for i := range names {
		names[i] = w.FieldPrefix + strconv.Itoa(i)
	}
	return names
}

type Field struct {
	Name  string
	Value []byte
}

//go:embed workloads
var workloads embed.FS

// BuiltinNames returns the names of YCSB's core workloads.
func BuiltinNames() []string { return []string{"a", "b", "c", "d", "e", "f"} }

// Builtin returns the properties of a core workload, by "a" or "workloada" in any case.
func Builtin(name string) (Properties, bool) {
	entries, ok := BuiltinEntries(name)
	return CollectEntries(entries), ok
}

// BuiltinEntries returns the entries of a core workload, as Builtin does for properties.
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
