package verdict

import (
	"strings"

	"skerry/internal/record"
)

// auditFaults are the reasons for which an audit makes a trial suspect. Histories that are not
// linearizable are told, but many databases do not promise that they are.
func auditFaults(a record.Audit) (out []reason) {
	for _, f := range []struct {
		n    int64
		what string
	}{
		{a.Lost, "acknowledged writes were lost"}, {a.Stale, "copies were older than what was acknowledged"},
		{a.Unexpected, "values were found that nobody wrote there"},
	} {
		out = append(out, one(f.n > 0, Audit, "audit: %d %s", f.n, f.what)...)
	}
	// What it could not read may be lost as well: its counts are too low.
	out = append(out, one(a.Unread > 0, NoEvidence, "audit: %d records could not be read back", a.Unread)...)
	for _, r := range a.Replicas {
		why, _, _ := strings.Cut(r.Error, "\n")
		out = append(out, one(why != "", NoEvidence, "audit: the copy on %s could not be read: %s", r.Node, why)...)
	}
	return out
}
