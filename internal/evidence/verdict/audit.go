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
		{a.Unexpected, "values were found that nobody wrote there"}, {a.Unread, "records could not be read back"},
	} {
		out = append(out, one(f.n > 0, Audit, "audit: %d %s", f.n, f.what)...)
	}
	for _, r := range a.Replicas {
		why, _, _ := strings.Cut(r.Error, "\n")
		out = append(out, one(why != "", NoEvidence, "audit: the copy on %s could not be read: %s", r.Node, why)...)
	}
	return out
}
