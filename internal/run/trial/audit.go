package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/load"
	"skerry/internal/load/audit"
	"skerry/internal/record"
)

const (
	// auditThreads read records back at once, replicaThreads those of one member.
	auditThreads   = 64
	replicaThreads = 16
	// historyPatience bounds the search for an order of operations.
	historyTimeout = 30 * time.Second
)

// errNoAudit says that a driver that was to read records back told nothing of them.
var errNoAudit = errors.New("the driver told no result")

// auditor reads back what a trial's clients were told is written.
type auditor struct {
	cell   experiment.Cell
	env    *environment
	driver driver
	report reporter
}

// audit reads every acknowledged write back, once all events are reverted and the cluster
// serves: through clients, and from every member that can be asked alone. It returns nil where
// the experiment asks for no audit; one that cannot be read is an error.
func (a auditor) audit(ctx context.Context) (*record.Audit, error) {
	if !a.cell.Experiment.Audit.Enabled {
		return nil, nil
	}
	began := time.Now()
	a.report.setStage("waiting for the cluster to settle before the audit")
	if err := a.env.waitReady(ctx); err != nil {
		return nil, fmt.Errorf("before the audit: %w", err)
	}
	r := &auditRun{auditor: a}
	for _, pool := range a.cell.Experiment.Audited() {
		if err := r.readPart(ctx, pool); err != nil {
			return nil, err
		}
	}
	if len(r.parts) == 0 {
		return nil, fmt.Errorf("no workload writes: %w", errNoAudit)
	}
	if err := r.readReplicas(ctx); err != nil {
		return nil, err
	}
	if err := r.checkHistory(ctx); err != nil {
		return nil, err
	}
	if err := a.report.writer.Audit(r.findings); err != nil {
		return nil, recordError{err}
	}
	r.out.AuditS = time.Since(began).Seconds()
	return &r.out, nil
}

// readBack reads through clients that stand where those of the workload did.
func (a auditor) readBack(ctx context.Context, pool experiment.Pool, spec load.Spec) (load.AuditResult, error) {
	done := int64(0)
	result, err := a.driver.drive(ctx, a.cell, pool, spec, func(i load.Interval) {
		done += i.OK
		a.report.setStagef("auditing: %d records read back", done)
	})
	if err == nil && result.Audit == nil {
		err = errNoAudit
	}
	if err != nil {
		return load.AuditResult{}, fmt.Errorf("auditing acknowledged writes: %w", err)
	}
	return *result.Audit, nil
}

// auditRun is an audit being put together. Workloads that write have records of their own, so that
// each is a part of it and no record is in two.
type auditRun struct {
	auditor
	parts    []auditPart
	out      record.Audit
	findings []record.AuditFinding
}

// auditPart is what one workload wrote, and what clients read of it.
type auditPart struct {
	spec load.Spec
	read load.AuditResult
}

// readPart reads back what a workload wrote.
func (r *auditRun) readPart(ctx context.Context, pool experiment.Pool) error {
	spec, err := r.driver.loadSpec(r.cell, pool, load.PhaseAudit)
	if err != nil {
		return err
	}
	spec.Threads, spec.Arrival, spec.Target = auditThreads, load.Closed, 0
	got, err := r.readBack(ctx, pool, spec)
	if err != nil {
		return err
	}
	p := auditPart{spec, got}
	r.parts = append(r.parts, p)
	r.out.Acknowledged += got.Acknowledged
	r.out.InDoubt += got.InDoubt
	r.out.Refused += got.Refused
	r.out.Keys += got.Keys
	r.out.Lost += got.Lost
	r.out.Stale += got.Stale
	r.out.Unexpected += got.Unexpected
	r.out.Unread += got.Unread
	for _, f := range got.Findings {
		r.findings = append(r.findings, p.newFinding(f, ""))
	}
	return nil
}

func (p auditPart) newFinding(f load.Finding, node string) record.AuditFinding {
	out := record.AuditFinding{Kind: f.Kind, Key: f.Key, Field: f.Field, Node: node, Saw: f.Saw}
	if f.Kind == "unread" {
		return out
	}
	out.Expected = f.Expected.Version.String()
	if f.Expected.Version != 0 {
		at := time.Duration(f.Expected.End - p.read.Began).Seconds()
		out.AcknowledgedS = &at
	}
	return out
}

// readReplicas reads every member's own copy, where the database lets members be asked alone.
func (r *auditRun) readReplicas(ctx context.Context) error {
	members, ok := r.env.cluster.(database.Replicated)
	if !ok {
		return nil
	}
	list, err := r.env.cluster.Members(ctx)
	if err != nil {
		return fmt.Errorf("asking for the members to audit: %w", err)
	}
	wrong := map[string]bool{} // what clients found wrong is no matter of single copies
	for _, p := range r.parts {
		for _, f := range p.read.Findings {
			wrong[f.Key+"."+f.Field] = f.Kind == string(audit.Lost) || f.Kind == string(audit.Unexpected)
		}
	}
	for i, m := range list {
		r.report.setStagef("auditing: replica %d of %d, %s", i+1, len(list), m.Node)
		x := record.ReplicaAudit{Node: m.Node}
		for _, p := range r.parts {
			got, err := p.readMember(ctx, members, m.Node)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				x.Error = err.Error()
				break
			}
			r.addReplica(&x, p, got, wrong)
		}
		r.out.Replicas = append(r.out.Replicas, x)
	}
	return nil
}

// readMember reads one member's own copy.
func (p auditPart) readMember(ctx context.Context, members database.Replicated, node string) (load.AuditResult, error) {
	spec, replica := p.spec, *p.spec.Audit
	replica.Replica, replica.HistoryKeys = true, 0
	spec.Threads, spec.Audit = replicaThreads, &replica
	got, err := load.Run(ctx, spec, func(ctx context.Context) (load.Client, error) { return members.OpenMember(ctx, node) }, nil)
	if err == nil && got.Audit == nil {
		err = errNoAudit
	}
	if err != nil {
		return load.AuditResult{}, err
	}
	return *got.Audit, nil
}

// addReplica adds what one member holds of a part to what is known of it.
func (r *auditRun) addReplica(x *record.ReplicaAudit, p auditPart, got load.AuditResult, wrong map[string]bool) {
	known := int64(0)
	for _, f := range got.Findings {
		if wrong[f.Key+"."+f.Field] {
			known++
			continue
		}
		r.findings = append(r.findings, p.newFinding(f, x.Node))
	}
	stale, unexpected := max(0, got.Stale-known), got.Unexpected
	if listed := int64(len(got.Findings)); listed == got.Stale+got.Unexpected+got.Unread { // all are listed, so that they can be counted apart
		stale, unexpected = 0, 0
		for _, f := range got.Findings {
			switch {
			case wrong[f.Key+"."+f.Field]:
			case f.Kind == string(audit.Unexpected):
				unexpected++
			case f.Kind == "stale":
				stale++
			}
		}
	}
	x.Held += got.Held
	x.Stale += stale
	x.Unexpected += unexpected
	x.Unread += got.Unread
	r.out.Stale += stale
	r.out.Unexpected += unexpected
	r.out.Unread += got.Unread
}

// checkHistory checks the operations on some records, with what was read in the end.
func (r *auditRun) checkHistory(ctx context.Context) error {
	first := r.parts[0]
	if first.spec.Audit.HistoryKeys == 0 {
		return nil
	}
	r.report.setStage("auditing: checking histories for linearizability")
	var ops []audit.Operation
	for _, p := range r.parts {
		some, err := audit.ReadHistory(ctx, p.spec.Audit.History(), p.read.Reads)
		if err != nil {
			return err
		}
		ops = append(ops, some...) // each on records of its own, and so are their clocks
	}
	names := first.read.Names
	describe := func(x audit.Register) string { return first.spec.Workload.Key(x.Number) + "." + names[x.Field] }
	loaded := func(n int64) bool {
		return slices.ContainsFunc(r.parts, func(p auditPart) bool { return n >= p.read.First && n < p.read.First+p.read.Loaded })
	}
	got := audit.CheckLinearizable(ops, loaded, len(names), historyTimeout, describe)
	h := &record.HistoryAudit{Keys: got.Keys, Operations: got.Operations, Result: record.Linearizable}
	for _, x := range got.Violated {
		h.Violated = append(h.Violated, describe(x))
	}
	slices.Sort(h.Violated)
	switch {
	case len(got.Violated) > 0:
		h.Result = record.Violated
	case len(got.Undecided) > 0:
		h.Result = record.Undecided
	}
	r.out.History = h
	if err := r.report.writer.History(got.WritePage); err != nil {
		return recordError{err}
	}
	return nil
}
