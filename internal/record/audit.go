package record

import (
	"encoding/json"
	"io"
)

// Audit is what reading every acknowledged write back found. docs/audit.md says how each
// figure is counted.
type Audit struct {
	// Acknowledged, InDoubt and Refused count the writes of the trial by outcome, the
	// warm-up's too; Keys the records that were read back, those of the load among them.
	Acknowledged int64 `json:"acknowledged_writes"`
	InDoubt      int64 `json:"writes_in_doubt"`
	Refused      int64 `json:"writes_refused"`
	Keys         int64 `json:"audited_keys"`
	// Lost counts acknowledged writes that are nowhere any more.
	Lost int64 `json:"lost_writes"`
	// Stale counts copies that held an older value than was acknowledged, while another
	// copy, or the same one later, held the newer.
	Stale int64 `json:"stale_copies"`
	// Unexpected counts values that nobody wrote there, or that were refused.
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
	// Held counts records that the member holds, Stale those of them that were older
	// than what was acknowledged to the end of the audit.
	Held       int64  `json:"held_keys"`
	Stale      int64  `json:"stale_copies"`
	Unexpected int64  `json:"unexpected_values"`
	Unread     int64  `json:"unread_keys"`
	Error      string `json:"error,omitempty"` // why it could not be asked
}

// HistoryAudit is the check of a few records' whole history for linearizability.
type HistoryAudit struct {
	Keys       int `json:"history_keys"`
	Operations int `json:"history_operations"`
	// Result is linearizable, violated, or undecided when time ran out.
	Result string `json:"result"`
	// Violated lists the record and field of each violation.
	Violated []string `json:"violated,omitempty"`
}

// Results of a HistoryAudit.
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
	// Node is the replica that was asked; absent for a client's read.
	Node string `json:"node,omitempty"`
	// AcknowledgedS is when the write that should be there was acknowledged, in seconds
	// since the measurement began; absent for a record of the load.
	AcknowledgedS *float64 `json:"acknowledged_s,omitempty"`
	// Expected is the version that should be there, Saw what was: a version, "missing", or
	// the begin of a value that is none. Version 0 is the load's.
	Expected string `json:"expected,omitempty"`
	Saw      string `json:"saw"`
}

// Names of an audit's files in a trial's directory.
const (
	auditFile   = "audit.jsonl"
	historyFile = "history.html"
)

// Audit writes audit.jsonl, a finding a line.
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

// History writes history.html, the drawing of the operations that were checked.
func (t *TrialWriter) History(draw func(io.Writer) error) error {
	return t.writeFile(historyFile, draw)
}

// Assertion is one line of an experiment's assert and whether it held.
type Assertion struct {
	Text string `json:"text"`
	Held bool   `json:"held"`
	// Value is what the trial measured, as the line would write it; "" where it has none.
	Value string `json:"value"`
	// Measured is the same as a number: in seconds, bytes, operations a second or cores, or a share
	// of 0 to 1, as Unit says; absent where the trial has none. AtLeast says that it is a lower bound.
	Measured *float64 `json:"measured,omitempty"`
	// Unit is s, B, /s, cores, % for a share, or absent for a count.
	Unit    string `json:"unit,omitempty"`
	AtLeast bool   `json:"at_least,omitempty"`
}
