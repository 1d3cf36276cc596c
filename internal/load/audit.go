package load

import (
	"fmt"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
)

// AuditSpec makes a drive's writes known by version, or reads them back.
type AuditSpec struct {
	// File is the ledger of writes: the run phase makes it when it ends, with the
	// history of some records in FILE.history; the audit phase reads it.
	File string `json:"file"`
	// On is the machine that has it, where that is not this process's: a driver writes on its
	// own, others read there.
	System files.System `json:"-"`
	// HistoryKeys is how many records' history is kept.
	HistoryKeys int `json:"history_keys"`
	// Settle is how long the audit phase gives what looks wrong to become right. On a
	// Replica what has become right was never wrong.
	Settle  time.Duration `json:"settle_ns"`
	Replica bool          `json:"replica,omitempty"`
}

// system is the machine that has the files.
func (a AuditSpec) system() files.System {
	if a.System == nil {
		return files.Local{}
	}
	return a.System
}

// History is where the history of some records is kept.
func (a AuditSpec) History() files.File { return files.File{On: a.system(), Path: a.historyFile()} }

// historyFile is where the history of some records is kept.
func (a AuditSpec) historyFile() string { return a.File + ".history" }

// logFile is where writes are taken down while they are done.
func (a AuditSpec) logFile() string { return a.File + ".log" }

// driveAudit is what a drive with an audit keeps.
type driveAudit struct {
	log     *audit.Log     // of a run phase on records
	history *audit.History // nil for none
}

// newDriveAudit returns nil where nothing is audited.
func newDriveAudit(spec Spec) (*driveAudit, error) {
	if spec.Audit == nil {
		return nil, nil
	}
	a := &driveAudit{}
	if spec.Phase != PhaseRun || spec.Tree != nil {
		return a, nil
	}
	if n := spec.Audit.HistoryKeys; n > 0 {
		a.history = audit.NewHistory(popularRecords(spec.Workload, spec.Seed, n))
	}
	var err error
	a.log, err = audit.NewLog(spec.Audit.logFile(), spec.Workload)
	return a, err
}

// openAudit makes what an audit needs.
func (d *driver) openAudit() (err error) {
	d.audit, err = newDriveAudit(d.spec)
	return err
}

// popularRecords are the first records that a workload of this seed asks for: the more often a
// record is asked for, the more likely it is among them.
func popularRecords(w ycsb.Workload, seed uint64, n int) (numbers []int64) {
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
func (a *driveAudit) save(spec Spec, began time.Duration) (AuditCounts, error) {
	ledger := audit.NewLedger(spec.Workload)
	err := a.log.Close()
	if err == nil {
		err = ledger.AddLog(spec.Audit.logFile())
	}
	if err == nil {
		err = ledger.Save(spec.Audit.File, int64(began))
	}
	if err == nil && a.history != nil {
		err = a.history.Save(spec.Audit.historyFile())
	}
	var n AuditCounts
	n.Acknowledged, n.InDoubt, n.Refused = ledger.Counts()
	return n, err
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
		audit.StampLoaded(op.Number, op.Values)
	}
}

// recordWrite tells what became of the write that stamp began.
func (w *worker) recordWrite(number int64, sent, done time.Duration, err error) {
	if w.audit == nil || w.wasAbandoned(sent, done) {
		return
	}
	outcome := audit.Acknowledged
	if err != nil {
		if outcome = audit.InDoubt; classify(err).Outcome == NotDone {
			outcome = audit.Refused
		}
	}
	w.audit.End(sent, done, outcome)
	if outcome != audit.Refused && w.d.audit.history.Watches(number) {
		w.d.audit.history.Add(w.auditOperation(w.audit.Current(), sent, done, outcome == audit.InDoubt))
	}
}

// auditOperation is a write as the history has it.
func (w *worker) auditOperation(now audit.Write, sent, done time.Duration, open bool) audit.Operation {
	o := audit.Operation{Worker: w.number, Number: now.Number, Call: int64(sent), Return: int64(done), Open: open}
	if open {
		o.Return = 0
	}
	fields := []int{now.Field}
	if now.Field == audit.AllFields {
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

// recordRead adds a read of a watched record to its history.
func (w *worker) recordRead(number int64, sent, done time.Duration, err error) {
	if w.audit == nil || !w.d.audit.history.Watches(number) || w.wasAbandoned(sent, done) {
		return
	}
	o := audit.Operation{Worker: w.number, Number: number, Read: true, Call: int64(sent), Return: int64(done)}
	if !o.SetRead(w.d.fieldNames, w.lastRead, err, ErrNotFound) {
		return
	}
	w.d.audit.history.Add(o)
}

// wasAbandoned tells whether nobody waits for the worker any more, whose operation was counted as
// unknown when it was left behind.
func (w *worker) wasAbandoned(sent, done time.Duration) bool {
	if done-sent <= w.d.spec.Timeout {
		return false
	}
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	return w.abandoned
}

// recordAbandoned enters the write of a worker that is left behind as one in doubt.
func (w *worker) recordAbandoned(doing series, sent time.Duration) {
	if w.audit == nil || !doing.isWrite() || doing == series(ycsb.Delete) {
		return
	}
	w.audit.Abandon(sent)
	if now := w.audit.Current(); w.d.audit.history.Watches(now.Number) {
		w.d.audit.history.Add(w.auditOperation(now, sent, 0, true))
	}
}

// saveAudit saves what a run phase knows about its writes.
func (d *driver) saveAudit(result *Result, began time.Duration) error {
	if d.audit == nil || d.spec.Phase != PhaseRun {
		return nil
	}
	if d.spec.Tree != nil {
		return d.saveTreeAudit(result)
	}
	audited, err := d.audit.save(d.spec, began)
	if err != nil {
		return fmt.Errorf("keeping what is to be audited: %w", err)
	}
	result.Audited = &audited
	return nil
}

// AuditCounts counts the writes that a ledger knows, the warm-up's too.
type AuditCounts struct {
	Acknowledged int64 `json:"acknowledged"`
	InDoubt      int64 `json:"in_doubt"`
	Refused      int64 `json:"refused"`
}
