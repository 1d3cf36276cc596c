// Package command is what Hydra's replicated log holds: transactions on rows of tables
// in a compact binary form. A transaction is checks and writes; whether its checks hold is
// decided when it is applied, by every cloud's database for itself and by all alike.
package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what a transaction may hold.
const (
	MaxTable     = 48      // bytes of a table's name
	MaxKey       = 512     // bytes of a key
	MaxValue     = 1 << 20 // bytes of a row's JSON
	MaxRequestID = 128     // bytes of an idempotency key
	MaxParts     = 4096    // checks and writes together
	// MaxWeight bounds the rows that a transaction's checks, merges and adds read and leave, in
	// bytes, each as often as it is touched: the work and the memory that it takes.
	MaxWeight = 64 << 20
)

// ErrInvalid says that a transaction is none that Hydra takes.
var ErrInvalid = errors.New("invalid transaction")

// Transaction is checks and writes that happen together or not at all. Writes are done in
// their order, each on what those before it have left.
type Transaction struct {
	// RequestID makes a retry harmless: of transactions with the same one only the first
	// is done, the others get its answer. "" for none.
	RequestID string  `json:"request_id,omitempty"`
	Checks    []Check `json:"checks,omitempty"`
	Writes    []Write `json:"writes,omitempty"`
}

// Condition is what a check asks of a row.
type Condition string

// Checks. The last six compare the value of a field, a number, string, boolean or null,
// with the check's value; a row or field that is not there is equal to nothing.
const (
	Exists         Condition = "exists"
	Absent         Condition = "absent"
	Version        Condition = "version" // the row is that of this version; 0: there is none
	Equal          Condition = "eq"
	NotEqual       Condition = "ne"
	Less           Condition = "lt"
	LessOrEqual    Condition = "le"
	Greater        Condition = "gt"
	GreaterOrEqual Condition = "ge"
)

// Check is a condition on one row.
type Check struct {
	Table   string          `json:"table"`
	Key     string          `json:"key"`
	Is      Condition       `json:"is"`
	Version uint64          `json:"version,omitempty"` // for version
	Field   string          `json:"field,omitempty"`   // for comparisons
	Value   json.RawMessage `json:"value,omitempty"`   // for comparisons: a scalar
	// Exact says that numbers are compared exactly. Normalize sets it; checks in logs of earlier versions compare
	// numbers beyond 64 bits as floating point, as the databases that applied them did.
	Exact bool `json:"-"`
}

// Action is what a write does.
type Action string

// Writes of rows, and of whole tables.
const (
	Put    Action = "put"    // the row is this value, whatever it was
	Merge  Action = "merge"  // these fields are set, null removes one, others stay; makes the row
	Add    Action = "add"    // whole numbers are added to fields, those that are not there count as 0
	Delete Action = "delete" // the row is gone; none there is no error

	CreateTable Action = "create_table"
	DropTable   Action = "drop_table"
	ClearTable  Action = "clear_table"
)

// Write is one change.
type Write struct {
	Do    Action `json:"do"`
	Table string `json:"table"`
	Key   string `json:"key,omitempty"`
	// Value is a JSON object: the row (put), fields (merge), whole numbers (add).
	Value json.RawMessage `json:"value,omitempty"`
}

// Codes of outcomes.
const (
	OK           = "ok"
	CheckFailed  = "check_failed"
	UnknownTable = "unknown_table"
	BadField     = "bad_field" // add to what is no whole number, or out of its range
	TooLarge     = "too_large" // a merge made a row larger than MaxValue, or rows weigh more than MaxWeight
)

// Outcome is what became of a transaction.
type Outcome struct {
	Code string `json:"code"`
	// Version is the index in the log at which it was done: the version of the rows that
	// it wrote. 0 when it was not done.
	Version uint64 `json:"version,omitempty"`
	// Failed is the check (check_failed) or write (others) that did not hold, from 0.
	Failed int `json:"failed,omitempty"`
}

// Conditional tells whether the outcome of a transaction depends on the rows: whoever
// wants to know it waits until it is applied.
func (t *Transaction) Conditional() bool {
	if t.RequestID != "" || len(t.Checks) > 0 {
		return true
	}
	for i := range t.Writes {
		if d := t.Writes[i].Do; d == Merge || d == Add {
			return true
		}
	}
	return false
}

// reserved are beginnings of table names that databases, and Hydra itself, use.
var reserved = []string{"hydra_", "sqlite_", "pg_"}

// ValidTable checks a table's name: lower-case letters, digits and underscores.
func ValidTable(name string) error {
	if len(name) > MaxTable || !isName(name) {
		return fmt.Errorf("%w: table %.60q: a name is a letter or underscore and up to %d more lower-case letters, digits and underscores", ErrInvalid, name, MaxTable-1)
	}
	for _, r := range reserved {
		if strings.HasPrefix(name, r) {
			return fmt.Errorf("%w: table %q: names that begin with %s are reserved", ErrInvalid, name, r)
		}
	}
	return nil
}

// isName tells whether a text is [a-z_][a-z0-9_]*.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// ValidKey checks a row's key: UTF-8 without the NUL character.
func ValidKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: the key is empty", ErrInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: the key has %d bytes, more than %d", ErrInvalid, len(key), MaxKey)
	case !utf8.ValidString(key), strings.ContainsRune(key, 0):
		return fmt.Errorf("%w: key %q is not UTF-8 without NUL", ErrInvalid, key)
	}
	return nil
}

// Normalize checks a transaction that a user gave and brings its values to the form that
// the log holds: compact JSON, names spelt in one way. Errors wrap ErrInvalid.
func (t *Transaction) Normalize() error {
	switch {
	case len(t.Checks)+len(t.Writes) > MaxParts:
		return fmt.Errorf("%w: %d checks and writes, more than %d", ErrInvalid, len(t.Checks)+len(t.Writes), MaxParts)
	case len(t.Writes) == 0:
		return fmt.Errorf("%w: it writes nothing", ErrInvalid)
	case len(t.RequestID) > MaxRequestID || !utf8.ValidString(t.RequestID) || bytes.ContainsRune([]byte(t.RequestID), 0):
		return fmt.Errorf("%w: an idempotency key is up to %d bytes of UTF-8", ErrInvalid, MaxRequestID)
	}
	for i := range t.Checks {
		if err := t.Checks[i].normalize(); err != nil {
			return fmt.Errorf("check %d: %w", i, err)
		}
	}
	for i := range t.Writes {
		if err := t.Writes[i].normalize(); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	return nil
}

func (c *Check) normalize() error {
	if err := ValidTable(c.Table); err != nil {
		return err
	}
	if err := ValidKey(c.Key); err != nil {
		return err
	}
	switch c.Is {
	case Exists, Absent, Version:
		return nil
	}
	if encodeCode(checkCodes, c.Is) == 255 {
		return fmt.Errorf("%w: is %q: known are exists, absent, version, eq, ne, lt, le, gt and ge", ErrInvalid, c.Is)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, c.Value); err != nil || !utf8.Valid(c.Value) {
		return fmt.Errorf("%w: the value to compare with is no JSON", ErrInvalid)
	}
	if v := compact.Bytes(); v[0] == '{' || v[0] == '[' {
		return fmt.Errorf("%w: the value to compare with is no number, string, boolean or null", ErrInvalid)
	}
	c.Value = compact.Bytes()
	if c.Exact = isNumber(c.Value); c.Exact {
		if _, exact := parseDecimal(c.Value); !exact {
			return fmt.Errorf("%w: the exponent of the number to compare with is out of bounds", ErrInvalid)
		}
	}
	return nil
}

func (w *Write) normalize() error {
	if err := ValidTable(w.Table); err != nil {
		return err
	}
	switch w.Do {
	case CreateTable, DropTable, ClearTable:
		w.Key, w.Value = "", nil
		return nil
	}
	if err := ValidKey(w.Key); err != nil {
		return err
	}
	switch w.Do {
	case Delete:
		w.Value = nil
		return nil
	case Put, Merge, Add:
	default:
		return fmt.Errorf("%w: do %q: known are put, merge, add, delete, create_table, drop_table and clear_table", ErrInvalid, w.Do)
	}
	if len(w.Value) > MaxValue {
		return fmt.Errorf("%w: the value has %d bytes, more than %d", ErrInvalid, len(w.Value), MaxValue)
	}
	value, err := normalizeObject(w.Value)
	if err != nil {
		return err
	}
	w.Value = value
	if w.Do == Add {
		for _, m := range splitMembers(value, nil) {
			if _, err := strconv.ParseInt(string(m.value), 10, 64); err != nil {
				return fmt.Errorf("%w: add: %s is no whole number of 64 bits", ErrInvalid, m.name)
			}
		}
	}
	return nil
}
