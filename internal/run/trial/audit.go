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
	"skerry/internal/load/audit/linear"
	"skerry/internal/record"
)

const (
	// auditThreads read records back at once, replicaThreads those of one member.
	auditThreads   = 64
	replicaThreads = 16
	// historyPatience bounds the search for an order of operations.
	historyPatience = 30 * time.Second
)

// errNoAudit says that a driver that was to read records back told nothing of them.
var errNoAudit = errors.New("the driver told no result")

// auditor reads back what a trial's clients were told is written.
type auditor struct {
	cell   experiment.Cell
	ground *ground
	driver driver
	tell   teller
}

// audit reads every acknowledged write back, once all events are reverted and the cluster
// serves: through clients, and from every member that can be asked alone. It returns nil where
// the experiment asks for no audit; one that cannot be read is an error.
func (a auditor) audit(ctx context.Context) (*record.Audit, error) {
	if !a.cell.Experiment.Audit.Enabled {
		return nil, nil
	}
	began := time.Now()
	a.tell.stage("waiting for the cluster to settle before the audit")
	if err := a.ground.settled(ctx); err != nil {
		return nil, fmt.Errorf("before the audit: %w", err)
	}
	pool, ok := a.cell.Experiment.Audited()
	if !ok {
		return nil, fmt.Errorf("no workload writes: %w", errNoAudit)
	}
	spec, err := a.driver.spec(a.cell, pool, load.PhaseAudit)
	if err != nil {
		return nil, err
	}
	spec.Threads, spec.Arrival, spec.Target = auditThreads, load.Closed, 0
	got, err := a.readBack(ctx, pool, spec)
	if err != nil {
		return nil, err
	}
	r := &reading{auditor: a, spec: spec, read: got, out: record.Audit{
		Acknowledged: got.Acknowledged, InDoubt: got.InDoubt, Refused: got.Refused, Keys: got.Keys,
		Lost: got.Lost, Stale: got.Stale, Unexpected: got.Unexpected, Unread: got.Unread,
	}}
	for _, f := range got.Findings {
		r.findings = append(r.findings, r.finding(f, ""))
	}
	if err := r.replicas(ctx); err != nil {
		return nil, err
	}
	if err := r.history(ctx); err != nil {
		return nil, err
	}
	if err := a.tell.writer.Audit(r.findings); err != nil {
		return nil, recordError{err}
	}
	r.out.AuditS = time.Since(began).Seconds()
	return &r.out, nil
}

// readBack reads through clients that stand where those of the workload did.
func (a auditor) readBack(ctx context.Context, pool experiment.Pool, spec load.Spec) (load.AuditRead, error) {
	done := int64(0)
	result, err := a.driver.drive(ctx, a.cell, pool, spec, func(i load.Interval) {
		done += i.OK
		a.tell.stagef("auditing: %d records read back", done)
	})
	if err == nil && result.Audit == nil {
		err = errNoAudit
	}
	if err != nil {
		return load.AuditRead{}, fmt.Errorf("auditing acknowledged writes: %w", err)
	}
	return *result.Audit, nil
}

// reading is an audit being put together.
type reading struct {
	auditor
	spec     load.Spec
	read     load.AuditRead
	out      record.Audit
	findings []record.AuditFinding
}

func (r *reading) finding(f load.Finding, node string) record.AuditFinding {
	out := record.AuditFinding{Kind: f.Kind, Key: f.Key, Field: f.Field, Node: node, Saw: f.Saw}
	if f.Kind == "unread" {
		return out
	}
	out.Expected = f.Expected.Version.String()
	if f.Expected.Version != 0 {
		at := time.Duration(f.Expected.End - r.read.Began).Seconds()
		out.AcknowledgedS = &at
	}
	return out
}

// replicas reads every member's own copy, where the database lets members be asked alone.
func (r *reading) replicas(ctx context.Context) error {
	members, ok := r.ground.cluster.(database.Replicated)
	if !ok {
		return nil
	}
	spec := r.spec
	replica := *spec.Audit
	replica.Replica, replica.HistoryKeys = true, 0
	spec.Threads, spec.Audit = replicaThreads, &replica
	list, err := r.ground.cluster.Members(ctx)
	if err != nil {
		return fmt.Errorf("asking for the members to audit: %w", err)
	}
	wrong := map[string]bool{} // what clients found wrong is no matter of single copies
	for _, f := range r.read.Findings {
		wrong[f.Key+"."+f.Field] = f.Kind == string(audit.Lost) || f.Kind == string(audit.Unexpected)
	}
	for i, m := range list {
		r.tell.stagef("auditing: replica %d of %d, %s", i+1, len(list), m.Node)
		got, err := load.Run(ctx, spec, func(ctx context.Context) (load.Client, error) { return members.OpenMember(ctx, m.Node) }, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && got.Audit == nil {
			err = errNoAudit
		}
		if err != nil {
			r.out.Replicas = append(r.out.Replicas, record.ReplicaAudit{Node: m.Node, Error: err.Error()})
			continue
		}
		r.replica(m.Node, *got.Audit, wrong)
	}
	return nil
}

// replica takes in what one member holds.
func (r *reading) replica(node string, got load.AuditRead, wrong map[string]bool) {
	x := record.ReplicaAudit{Node: node, Held: got.Held, Unread: got.Unread}
	known := int64(0)
	for _, f := range got.Findings {
		if wrong[f.Key+"."+f.Field] {
			known++
			continue
		}
		r.findings = append(r.findings, r.finding(f, node))
	}
	listed := int64(len(got.Findings))
	x.Unexpected = got.Unexpected
	x.Stale = max(0, got.Stale-known)
	if listed == got.Stale+got.Unexpected+got.Unread { // all are listed, so that they can be counted apart
		x.Stale, x.Unexpected = 0, 0
		for _, f := range got.Findings {
			switch {
			case wrong[f.Key+"."+f.Field]:
			case f.Kind == string(audit.Unexpected):
				x.Unexpected++
			case f.Kind == "stale":
				x.Stale++
			}
		}
	}
	r.out.Stale += x.Stale
	r.out.Unexpected += x.Unexpected
	r.out.Unread += x.Unread
	r.out.Replicas = append(r.out.Replicas, x)
}

// history checks the operations on some records, with what was read in the end.
func (r *reading) history(ctx context.Context) error {
	if r.spec.Audit.HistoryKeys == 0 {
		return nil
	}
	r.tell.stage("auditing: checking histories for linearizability")
	ops, err := audit.ReadHistory(ctx, r.spec.Audit.History(), r.read.Reads)
	if err != nil {
		return err
	}
	names := r.read.Names
	describe := func(x linear.Register) string { return r.spec.Workload.Key(x.Number) + "." + names[x.Field] }
	loaded := func(n int64) bool { return n >= r.read.First && n < r.read.First+r.read.Loaded }
	got := linear.Check(ops, loaded, len(names), historyPatience, describe)
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
	if err := r.tell.writer.History(got.Draw); err != nil {
		return recordError{err}
	}
	return nil
}
