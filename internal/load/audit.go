package load

import (
	"fmt"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
)

// AuditSpec configures the audit of acknowledged writes: a run phase records them, an audit phase
// reads them back.
type AuditSpec struct {
	// File is the ledger of writes. The run phase creates it at its end, together with the history
	// of some records in FILE.history. The audit phase reads it.
	File string `json:"file"`
	// System is the file system that holds File; nil is this process's own. A driver writes on its
	// own machine, and other processes read there.
	System files.System `json:"-"`
	// HistoryKeys is the number of records with a complete history.
	HistoryKeys int `json:"history_keys"`
	// Settle is how long the audit phase waits for wrong records to become right. On a Replica, a
	// record that becomes right does not count as stale.
	Settle  time.Duration `json:"settle_ns"`
	Replica bool          `json:"replica,omitempty"`
}

func (a AuditSpec) system() files.System {
	if a.System == nil {
		return files.Local{}
	}
	return a.System
}

// History is the file with the history of some records.
func (a AuditSpec) History() files.File { return files.File{On: a.system(), Path: a.historyFile()} }

func (a AuditSpec) historyFile() string { return a.File + ".history" }

func (a AuditSpec) logFile() string { return a.File + ".log" }

type driveAudit struct {
	log     *audit.Log     // nil except for the run phase of a record workload
	history *audit.History // nil if no history is recorded
}

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

func (d *driver) openAudit() (err error) {
	d.audit, err = newDriveAudit(d.spec)
	return err
}

// popularRecords returns the first n distinct records that a workload with this seed requests.
// Frequently requested records are likely to be among them.
func popularRecords(w ycsb.Workload, seed uint64, n int) (numbers []int64) {
	const draws = 10_000 // a table can hold fewer than n records
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

func (a *driveAudit) save(spec Spec, began time.Duration) (audit.Counts, error) {
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
	return ledger.Counts(), err
}

// stamp writes a version into the values of op, before the operation's clock starts.
func (w *worker) stamp(op *ycsb.Op) {
	if w.audit != nil {
		w.audit.Stamp(op.Number, op.Values)
	}
}

func (w *worker) stampLoaded(op *ycsb.Op) {
	if w.d.audit != nil {
		audit.StampLoaded(op.Number, op.Values)
	}
}

func auditOutcome(err error) audit.Outcome {
	switch {
	case err == nil:
		return audit.Acknowledged
	case classify(err).Outcome == NotDone:
		return audit.Refused
	}
	return audit.InDoubt
}

func (w *worker) recordWrite(number int64, sent, done time.Duration, err error) {
	if w.audit == nil || w.wasAbandoned(sent, done) {
		return
	}
	outcome := auditOutcome(err)
	w.audit.End(sent, done, outcome)
	if outcome != audit.Refused && w.d.audit.history.Watches(number) {
		w.d.audit.history.Add(w.auditOperation(w.audit.Current(), sent, done, outcome == audit.InDoubt))
	}
}

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

// wasAbandoned reports whether the worker was abandoned during the operation, which then already
// counts as unknown.
func (w *worker) wasAbandoned(sent, done time.Duration) bool {
	if done-sent <= w.d.spec.Timeout {
		return false
	}
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	return w.abandoned
}

func (w *worker) recordAbandoned(doing series, sent time.Duration) {
	if w.audit == nil || !doing.isWrite() || doing == series(ycsb.Delete) {
		return
	}
	w.audit.Abandon(sent)
	if now := w.audit.Current(); w.d.audit.history.Watches(now.Number) {
		w.d.audit.history.Add(w.auditOperation(now, sent, 0, true))
	}
}

func (d *driver) saveAudit(result *Result, began time.Duration) error {
	if d.audit == nil || d.spec.Phase != PhaseRun {
		return nil
	}
	if d.spec.Tree != nil {
		return d.saveTreeAudit(result)
	}
	audited, err := d.audit.save(d.spec, began)
	if err != nil {
		return fmt.Errorf("save the audit: %w", err)
	}
	result.Audited = &audited
	return nil
}
