package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"skerry/internal/audit"
	"skerry/internal/audit/linear"
	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/load"
	"skerry/internal/record"
)

const (
	// auditThreads read records back at once, replicaThreads those of one member.
	auditThreads   = 64
	replicaThreads = 16
	// historyPatience bounds the search for an order of operations.
	historyPatience = 30 * time.Second
)

// auditSpec is what the driver needs to make writes known; nil where nothing is audited.
func (r *run) auditSpec(e experiment.Experiment) *load.AuditSpec {
	a := e.Audit
	client, err := r.client()
	if !a.Enabled || err != nil {
		return nil
	}
	keys := a.HistoryKeys
	if tree, err := e.Tree(); tree != nil || err != nil {
		keys = 0 // a tree's changes have no versions that a history could be of
	}
	return &load.AuditSpec{File: filepath.Join(client.Dir(), "writes"), HistoryKeys: keys, Settle: time.Duration(a.Settle)}
}

// audit reads every acknowledged write back, once all events are reverted and the cluster
// serves: through clients, and from every member that can be asked alone.
func (r *run) audit(ctx context.Context, m measurement) error {
	if !r.Cell.Experiment.Audit.Enabled {
		return nil
	}
	began := time.Now()
	r.stage("waiting for the cluster to settle before the audit")
	if err := r.settled(ctx); err != nil {
		return fmt.Errorf("before the audit: %w", err)
	}
	spec, err := r.spec(r.Cell, load.PhaseAudit)
	if err != nil {
		return err
	}
	spec.Threads, spec.Arrival, spec.Target = auditThreads, load.Closed, 0
	got, err := r.readBack(ctx, spec)
	if err != nil {
		return err
	}
	e := &evidence{run: r, spec: spec, read: got, out: record.Audit{
		Acknowledged: got.Acknowledged, InDoubt: got.InDoubt, Refused: got.Refused, Keys: got.Keys,
		Lost: got.Lost, Stale: got.Stale, Unexpected: got.Unexpected, Unread: got.Unread,
	}}
	for _, f := range got.Findings {
		e.findings = append(e.findings, e.finding(f, ""))
	}
	if err := e.replicas(ctx); err != nil {
		return err
	}
	if err := e.history(); err != nil {
		return err
	}
	e.out.AuditS = time.Since(began).Seconds()
	r.result.Audit = &e.out
	if faults := auditFaults(e.out); len(faults) > 0 {
		r.result.Verdict.State = record.Suspect
		r.result.Verdict.Reasons = append(r.result.Verdict.Reasons, faults...)
	}
	if err := r.Writer.Audit(e.findings); err != nil {
		return recordError{err}
	}
	return nil
}

// readBack reads through clients that stand where those of the workload did.
func (r *run) readBack(ctx context.Context, spec load.Spec) (load.AuditRead, error) {
	done := int64(0)
	result, err := r.drive(ctx, r.Cell, spec, func(i load.Interval) {
		done += i.OK
		r.stage(fmt.Sprintf("auditing: %d records read back", done))
	})
	if err == nil && result.Audit == nil {
		err = errors.New("the driver told no result")
	}
	if err != nil {
		return load.AuditRead{}, fmt.Errorf("auditing acknowledged writes: %w", err)
	}
	return *result.Audit, nil
}

// evidence is an audit being put together.
type evidence struct {
	*run
	spec     load.Spec
	read     load.AuditRead
	out      record.Audit
	findings []record.AuditFinding
}

func (e *evidence) finding(f load.Finding, node string) record.AuditFinding {
	out := record.AuditFinding{Kind: f.Kind, Key: f.Key, Field: f.Field, Node: node, Saw: f.Saw}
	if f.Kind == "unread" {
		return out
	}
	out.Expected = f.Expected.Version.String()
	if f.Expected.Version != 0 {
		at := time.Duration(f.Expected.End - e.read.Began).Seconds()
		out.AcknowledgedS = &at
	}
	return out
}

// replicas reads every member's own copy, where the database lets members be asked alone.
func (e *evidence) replicas(ctx context.Context) error {
	members, ok := e.cluster.(database.Replicated)
	if !ok {
		return nil
	}
	spec := e.spec
	replica := *spec.Audit
	replica.Replica, replica.HistoryKeys = true, 0
	spec.Threads, spec.Audit = replicaThreads, &replica
	list, err := e.cluster.Members(ctx)
	if err != nil {
		return fmt.Errorf("asking for the members to audit: %w", err)
	}
	wrong := map[string]bool{} // what clients found wrong is no matter of single copies
	for _, f := range e.read.Findings {
		wrong[f.Key+"."+f.Field] = f.Kind == string(audit.Lost) || f.Kind == string(audit.Unexpected)
	}
	for i, m := range list {
		e.stage(fmt.Sprintf("auditing: replica %d of %d, %s", i+1, len(list), m.Node))
		got, err := load.Run(ctx, spec, func(ctx context.Context) (load.Client, error) { return members.OpenMember(ctx, m.Node) }, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e.out.Replicas = append(e.out.Replicas, record.ReplicaAudit{Node: m.Node, Error: err.Error()})
			continue
		}
		e.replica(m.Node, *got.Audit, wrong)
	}
	return nil
}

// replica takes in what one member holds.
func (e *evidence) replica(node string, got load.AuditRead, wrong map[string]bool) {
	r := record.ReplicaAudit{Node: node, Held: got.Held, Unread: got.Unread}
	known := int64(0)
	for _, f := range got.Findings {
		if wrong[f.Key+"."+f.Field] {
			known++
			continue
		}
		e.findings = append(e.findings, e.finding(f, node))
	}
	listed := int64(len(got.Findings))
	r.Unexpected = got.Unexpected
	r.Stale = max(0, got.Stale-known)
	if listed == got.Stale+got.Unexpected+got.Unread { // all are listed, so that they can be counted apart
		r.Stale, r.Unexpected = 0, 0
		for _, f := range got.Findings {
			switch {
			case wrong[f.Key+"."+f.Field]:
			case f.Kind == string(audit.Unexpected):
				r.Unexpected++
			case f.Kind == "stale":
				r.Stale++
			}
		}
	}
	e.out.Stale += r.Stale
	e.out.Unexpected += r.Unexpected
	e.out.Unread += r.Unread
	e.out.Replicas = append(e.out.Replicas, r)
}

// history checks the operations on some records, with what was read in the end.
func (e *evidence) history() error {
	if e.spec.Audit.HistoryKeys == 0 {
		return nil
	}
	e.stage("auditing: checking histories for linearizability")
	ops, err := audit.ReadHistory(e.spec.Audit.File+".history", e.read.Reads)
	if err != nil {
		return err
	}
	names := e.read.Names
	describe := func(r linear.Register) string { return e.spec.Workload.Key(r.Number) + "." + names[r.Field] }
	loaded := func(n int64) bool { return n >= e.read.First && n < e.read.First+e.read.Loaded }
	got := linear.Check(ops, loaded, len(names), historyPatience, describe)
	h := &record.HistoryAudit{Keys: got.Keys, Operations: got.Operations, Result: record.Linearizable}
	for _, r := range got.Violated {
		h.Violated = append(h.Violated, describe(r))
	}
	slices.Sort(h.Violated)
	switch {
	case len(got.Violated) > 0:
		h.Result = record.Violated
	case len(got.Undecided) > 0:
		h.Result = record.Undecided
	}
	e.out.History = h
	if err := e.Writer.History(got.Draw); err != nil {
		return recordError{err}
	}
	return nil
}

// auditFaults are the reasons for which an audit makes a trial suspect. Histories that are not
// linearizable are told, but many databases do not promise that they are.
func auditFaults(a record.Audit) (reasons []string) {
	for _, f := range []struct {
		n    int64
		what string
	}{
		{a.Lost, "acknowledged writes were lost"}, {a.Stale, "copies were older than what was acknowledged"},
		{a.Unexpected, "values were found that nobody wrote there"}, {a.Unread, "records could not be read back"},
	} {
		if f.n > 0 {
			reasons = append(reasons, fmt.Sprintf("audit: %d %s", f.n, f.what))
		}
	}
	return reasons
}
