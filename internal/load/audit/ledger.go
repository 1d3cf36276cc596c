package audit

import "skerry/internal/load/ycsb"

// Outcome is what became of a write.
type Outcome uint8

// Outcomes.
const (
	Acknowledged Outcome = iota
	InDoubt              // it may have happened, and may still
	Refused              // it certainly did not happen
)

// allFields stands for every field of a record.
const allFields = 0xFF

// MaxFields is how many fields a record may have.
const MaxFields = allFields

// maxRefused bounds the refused writes that are remembered, so that an outage in which a driver
// is refused at full speed does not fill the memory: 1,000,000 take 32 MB. A refused write
// beyond that which is there after all passes for an older one.
const maxRefused = 1_000_000

// Ledger knows, of every record, the writes that it may show in the end.
type Ledger struct {
	first  int64 // number of the first record
	loaded int64 // how many records from there the load left
	names  []string
	// heads are the first nodes of records' lists, plus 1; 0 is none.
	heads []uint32
	// chunks hold the nodes, so that growing copies none.
	chunks [][]node
	used   uint32
	free   uint32 // list of nodes, plus 1

	counts [3]int64 // by Outcome
}

// NewLedger begins a ledger of a table that was loaded with a workload's records.
func NewLedger(w ycsb.Workload) *Ledger {
	return &Ledger{first: w.InsertStart, loaded: w.InsertCount, names: w.FieldNames()}
}

// Counts are the writes by outcome.
func (l *Ledger) Counts() (acknowledged, inDoubt, refused int64) {
	return l.counts[Acknowledged], l.counts[InDoubt], l.counts[Refused]
}

// node is a write that may be seen, or must not be.
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

// add puts a write into a record's list and takes those out that it made history. Writes come
// in any order.
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

// supersededBy tells whether another write came after this one to all that it wrote.
func (n *node) supersededBy(o *node) bool {
	return n.outcome == Acknowledged && o.outcome == Acknowledged && n.end < o.start && (o.field == allFields || o.field == n.field)
}
