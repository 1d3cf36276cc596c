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
	// auditThreads is the concurrency of the audit through clients.
	auditThreads = 64
	// replicaThreads is the concurrency of the audit of one member.
	replicaThreads = 16
	// historyTimeout bounds the linearizability check.
	historyTimeout = 30 * time.Second
)

var errNoAudit = errors.New("the driver returned no audit result")

// auditor reads acknowledged writes back after the measurement.
type auditor struct {
	cell   experiment.Cell
	env    *environment
	driver driver
	report reporter
}

// audit reads every acknowledged write back, through clients and from every member that serves reads alone.
// Call it when all events are reverted. It returns nil if the experiment has no audit.
func (a auditor) audit(ctx context.Context) (*record.Audit, error) {
	if !a.cell.Experiment.Audit.Enabled {
		return nil, nil
	}
	began := time.Now()
	a.report.setStage("audit: waiting for the cluster")
	if err := a.env.waitReady(ctx); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	r := &auditRun{auditor: a}
	for _, pool := range a.cell.Experiment.AuditedPools() {
		if err := r.readPart(ctx, pool); err != nil {
			return nil, err
		}
	}
	if len(r.parts) == 0 {
		return nil, fmt.Errorf("audit: no workload writes: %w", errNoAudit)
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

// readBack reads through clients on the same nodes as the workload's.
func (a auditor) readBack(ctx context.Context, pool experiment.Pool, spec load.Spec) (load.AuditResult, error) {
	done := int64(0)
	result, err := a.driver.drive(ctx, a.cell, pool, spec, func(i load.Interval) {
		done += i.OK
		a.report.setStagef("audit: %d records read", done)
	})
	if err == nil && result.Audit == nil {
		err = errNoAudit
	}
	if err != nil {
		return load.AuditResult{}, fmt.Errorf("audit acknowledged writes: %w", err)
	}
	return *result.Audit, nil
}

// auditRun is an audit in progress. Each workload that writes has its own records and is one part.
type auditRun struct {
	auditor
	parts    []auditPart
	out      record.Audit
	findings []record.AuditFinding
}

// auditPart holds what one workload wrote and what clients read back.
type auditPart struct {
	spec load.Spec
	read load.AuditResult
}

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

// readReplicas reads every member's own copy, if the database supports that.
func (r *auditRun) readReplicas(ctx context.Context) error {
	members, ok := r.env.cluster.(database.Replicated)
	if !ok {
		return nil
	}
	list, err := r.env.cluster.Members(ctx)
	if err != nil {
		return fmt.Errorf("audit: list members: %w", err)
	}
	wrong := map[string]bool{} // findings of clients are not counted per replica
	for _, p := range r.parts {
		for _, f := range p.read.Findings {
			wrong[f.Key+"."+f.Field] = f.Kind == string(audit.Lost) || f.Kind == string(audit.Unexpected)
		}
	}
	for i, m := range list {
		r.report.setStagef("audit: replica %d of %d (%s)", i+1, len(list), m.Node)
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

// addReplica adds one member's result for a part. Findings that clients saw too do not count against the
// member.
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
	if listed := int64(len(got.Findings)); listed == got.Stale+got.Unexpected+got.Unread { // the list is complete
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

// checkHistory checks a sample of records for linearizability, including their final reads.
func (r *auditRun) checkHistory(ctx context.Context) error {
	first := r.parts[0]
	if first.spec.Audit.HistoryKeys == 0 {
		return nil
	}
	r.report.setStage("audit: checking linearizability")
	var ops []audit.Operation
	for _, p := range r.parts {
		some, err := audit.ReadHistory(ctx, p.spec.Audit.History(), p.read.Reads)
		if err != nil {
			return err
		}
		ops = append(ops, some...) // parts share neither records nor clocks
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
