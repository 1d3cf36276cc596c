package load

import (
	"fmt"
	"time"

	"skerry/internal/audit"
	"skerry/internal/ycsb"
)

// AuditSpec makes a drive's writes known by version, or reads them back.
type AuditSpec struct {
	// File is the ledger of writes: the run phase makes it when it ends, with the
	// history of some records in FILE.history; the audit phase reads it.
	File string `json:"file"`
	// HistoryKeys is how many records' history is kept.
	HistoryKeys int `json:"history_keys"`
	// Settle is how long the audit phase gives what looks wrong to become right. On a
	// Replica what has become right was never wrong.
	Settle  time.Duration `json:"settle_ns"`
	Replica bool          `json:"replica,omitempty"`
}

// historyFile is where the history of some records is kept.
func (a AuditSpec) historyFile() string { return a.File + ".history" }

// auditing is what a drive with an audit keeps.
type auditing struct {
	ledger  *audit.Ledger
	history *audit.History
}

// newAuditing returns nil where nothing is audited.
func newAuditing(spec Spec, seed uint64) *auditing {
	if spec.Audit == nil {
		return nil
	}
	a := &auditing{ledger: audit.NewLedger(spec.Workload)}
	if n := spec.Audit.HistoryKeys; n > 0 && spec.Phase == PhaseRun {
		a.history = audit.NewHistory(popular(spec.Workload, seed, n))
	}
	return a
}

// popular are the first records that a workload of this seed asks for: the more often a
// record is asked for, the more likely it is among them.
func popular(w ycsb.Workload, seed uint64, n int) (numbers []int64) {
	const draws = 10_000 // a table may hold fewer records than are wanted
	g := ycsb.NewSource(w, seed).NewGenerator()
	seen := map[int64]bool{}
	for i := uint64(0); i < draws && len(numbers) < n; i++ {
		if g.Kind(i) == ycsb.Insert {
			continue
		}
		if op := g.Next(i); !seen[op.Number] {
			seen[op.Number] = true
			numbers = append(numbers, op.Number)
		}
	}
	return numbers
}

// save keeps what a later process reads back.
func (a *auditing) save(spec AuditSpec, began time.Duration) error {
	if err := a.ledger.Save(spec.File, int64(began)); err != nil {
		return err
	}
	if a.history == nil {
		return nil
	}
	return a.history.Save(spec.historyFile())
}

// stamp marks a write's values with its version. It belongs to making the values, before
// the operation's clock starts.
func (w *worker) stamp(op *ycsb.Op) {
	if w.audit != nil {
		w.audit.Stamp(op.Number, op.Values)
	}
}

// stampLoaded marks the values of a record that the load phase inserts.
func (w *worker) stampLoaded(op *ycsb.Op) {
	if w.d.audit != nil {
		w.d.audit.ledger.StampLoaded(op.Number, op.Values)
	}
}

// wrote tells the ledger what became of the write.
func (w *worker) wrote(sent, done time.Duration, err error) {
	if w.audit == nil || w.late(sent, done) {
		return
	}
	outcome := audit.Acknowledged
	if err != nil {
		if outcome = audit.InDoubt; classify(err).Outcome == NotDone {
			outcome = audit.Refused
		}
	}
	w.audit.Ended(sent, done, outcome)
	if now := w.audit.Now(); outcome != audit.Refused && w.d.audit.history.Watches(now.Number) {
		w.d.audit.history.Add(w.operation(now, sent, done, outcome == audit.InDoubt))
	}
}

// operation is a write as the history has it.
func (w *worker) operation(now audit.Write, sent, done time.Duration, open bool) audit.Operation {
	o := audit.Operation{Worker: w.number, Number: now.Number, Call: int64(sent), Return: int64(done), Open: open}
	if open {
		o.Return = 0
	}
	fields := []int{now.Field}
	if now.Field == audit.All {
		fields = fields[:0]
		for f := range w.d.spec.Workload.Fields {
			fields = append(fields, f)
		}
	}
	for _, f := range fields {
		o.Fields, o.Versions = append(o.Fields, f), append(o.Versions, now.Version)
	}
	return o
}

// wasRead adds a read of a watched record to its history.
func (w *worker) wasRead(number int64, sent, done time.Duration, err error) {
	if w.audit == nil || !w.d.audit.history.Watches(number) || w.late(sent, done) {
		return
	}
	o := audit.Operation{Worker: w.number, Number: number, Read: true, Call: int64(sent), Return: int64(done)}
	if !o.Saw(w.d.names, w.read, err, ErrNotFound) {
		return
	}
	w.d.audit.history.Add(o)
}

// late tells whether nobody waits for the worker any more, whose operation was counted as
// unknown when it was left behind.
func (w *worker) late(sent, done time.Duration) bool {
	if done-sent <= w.d.spec.Timeout {
		return false
	}
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	return w.left
}

// abandoned enters the write of a worker that is left behind as one in doubt.
func (w *worker) abandoned(doing series, sent time.Duration) {
	if w.audit == nil || !doing.isWrite() {
		return
	}
	w.audit.Abandoned(sent)
	if now := w.audit.Now(); w.d.audit.history.Watches(now.Number) {
		w.d.audit.history.Add(w.operation(now, sent, 0, true))
	}
}

// keep saves what a run phase knows about its writes.
func (d *driver) keep(result *Result, began time.Duration) error {
	if d.audit == nil || d.spec.Phase != PhaseRun {
		return nil
	}
	if err := d.audit.save(*d.spec.Audit, began); err != nil {
		return fmt.Errorf("keeping what is to be audited: %w", err)
	}
	acknowledged, inDoubt, refused := d.audit.ledger.Counts()
	result.Audited = &Audited{acknowledged, inDoubt, refused}
	return nil
}

// Audited counts the writes that a ledger knows, the warm-up's too.
type Audited struct {
	Acknowledged int64 `json:"acknowledged"`
	InDoubt      int64 `json:"in_doubt"`
	Refused      int64 `json:"refused"`
}
