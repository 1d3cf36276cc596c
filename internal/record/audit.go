package record

import (
	"encoding/json"
	"io"
)

// Audit is the result of reading every acknowledged write back. docs/audit.md defines every figure.
type Audit struct {
	// Acknowledged, InDoubt and Refused count the writes of the trial by outcome, including the warm-up's. Keys counts
	// the records that were read back, including those of the load.
	Acknowledged int64 `json:"acknowledged_writes"`
	InDoubt      int64 `json:"writes_in_doubt"`
	Refused      int64 `json:"writes_refused"`
	Keys         int64 `json:"audited_keys"`
	// Lost counts acknowledged writes that no copy has.
	Lost int64 `json:"lost_writes"`
	// Stale counts copies that held an older value than acknowledged, while another copy, or the same copy later, held
	// the newer value.
	Stale int64 `json:"stale_copies"`
	// Unexpected counts values that were never written, or whose write was refused.
	Unexpected int64 `json:"unexpected_values"`
	// Unread counts records that could not be read.
	Unread   int64          `json:"unread_keys"`
	Replicas []ReplicaAudit `json:"replicas,omitempty"`
	AuditS   float64        `json:"audit_s"`
	History  *HistoryAudit  `json:"history,omitempty"`
}

// ReplicaAudit is what one member held of the audited records.
type ReplicaAudit struct {
	Node string `json:"node"`
	// Held counts records on the member. Stale counts those that remained older than acknowledged until the end of the
	// audit.
	Held       int64  `json:"held_keys"`
	Stale      int64  `json:"stale_copies"`
	Unexpected int64  `json:"unexpected_values"`
	Unread     int64  `json:"unread_keys"`
	Error      string `json:"error,omitempty"` // why it could not be read
}

// HistoryAudit is the linearizability check of a few records' whole history.
type HistoryAudit struct {
	Keys       int `json:"history_keys"`
	Operations int `json:"history_operations"`
	// Result is linearizable, violated, or undecided if the check ran out of time.
	Result string `json:"result"`
	// Violated lists the record and field of each violation.
	Violated []string `json:"violated,omitempty"`
}

const (
	Linearizable = "linearizable"
	Violated     = "violated"
	Undecided    = "undecided"
)

// AuditFinding is one line of audit.jsonl.
type AuditFinding struct {
	Kind  string `json:"kind"` // lost, stale, unexpected or unread
	Key   string `json:"key"`
	Field string `json:"field,omitempty"` // absent for the whole record
	// Node is the replica that was read; absent for a client's read.
	Node string `json:"node,omitempty"`
	// AcknowledgedS is when the expected write was acknowledged, in seconds since the measurement began; absent for a
	// record of the load.
	AcknowledgedS *float64 `json:"acknowledged_s,omitempty"`
	// Expected is the expected version. Saw is the version found, "missing", or the beginning of a value without a
	// version. Version 0 is the load's.
	Expected string `json:"expected,omitempty"`
	Saw      string `json:"saw"`
}

const (
	auditFile   = "audit.jsonl"
	historyFile = "history.html"
)

// Audit writes audit.jsonl, one finding per line.
func (t *TrialWriter) Audit(findings []AuditFinding) error {
	return t.writeFile(auditFile, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		for _, f := range findings {
			if err := e.Encode(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// History writes history.html, a drawing of the checked operations.
func (t *TrialWriter) History(draw func(io.Writer) error) error {
	return t.writeFile(historyFile, draw)
}

// Assertion is one line of an experiment's assert, with its result.
type Assertion struct {
	Text string `json:"text"`
	Held bool   `json:"held"`
	// Value is the measured value, in the notation of the line; "" if the trial has none.
	Value string `json:"value"`
	// Measured is the value as a number in seconds, bytes, operations per second or cores, or a share of 0 to 1,
	// according to Unit; absent if the trial has none. AtLeast marks a lower bound.
	Measured *float64 `json:"measured,omitempty"`
	// Unit is s, B, /s, cores, % for a share, or absent for a count.
	Unit    string `json:"unit,omitempty"`
	AtLeast bool   `json:"at_least,omitempty"`
}
