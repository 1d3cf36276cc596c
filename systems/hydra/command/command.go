// Package command holds the transactions of Hydra's replicated log and their binary form. A
// transaction consists of checks and writes. Every cloud's database evaluates the checks when
// it applies the transaction, and all come to the same result.
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

const (
	MaxTable     = 48      // bytes of a table's name
	MaxKey       = 512     // bytes of a key
	MaxValue     = 1 << 20 // bytes of a row's JSON
	MaxRequestID = 128     // bytes of an idempotency key
	MaxParts     = 4096    // checks and writes together
	// MaxWeight bounds the bytes of rows that checks, merges and adds touch, counted at each use.
	MaxWeight = 64 << 20
)

var ErrInvalid = errors.New("invalid transaction")

// Transaction is checks and writes, executed completely or not at all. Each write sees the previous ones.
type Transaction struct {
	// RequestID makes retries idempotent: one transaction per ID is executed, the others get its answer. "" for none.
	RequestID string  `json:"request_id,omitempty"`
	Checks    []Check `json:"checks,omitempty"`
	Writes    []Write `json:"writes,omitempty"`
}

// Condition is the kind of a check.
type Condition string

// Conditions. The last six compare a scalar field with the check's value. A missing row or field equals nothing.
const (
	Exists         Condition = "exists"
	Absent         Condition = "absent"
	Version        Condition = "version" // the row has this version; 0: no row
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
}

// Action is the kind of a write.
type Action string

const (
	Put    Action = "put"    // replace the row
	Merge  Action = "merge"  // set fields, null removes one; creates the row
	Add    Action = "add"    // add integers to fields; missing fields count as 0
	Delete Action = "delete" // remove the row, if any

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

const (
	OK           = "ok"
	CheckFailed  = "check_failed"
	UnknownTable = "unknown_table"
	BadField     = "bad_field" // add to a field that is not an integer, or overflow
	TooLarge     = "too_large" // row above MaxValue, or rows above MaxWeight
)

// Outcome is the result of a transaction.
type Outcome struct {
	Code string `json:"code"`
	// Version is the log index of the execution, and the version of the rows that it wrote; 0 if not executed.
	Version uint64 `json:"version,omitempty"`
	// Failed is the position of the check (check_failed) or write (other codes) that failed.
	Failed int `json:"failed,omitempty"`
}

// Conditional reports whether the outcome depends on rows, and so is known only after applying.
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

var reserved = []string{"hydra_", "sqlite_", "pg_"}

// ValidTable checks a table's name: lower-case letters, digits and underscores.
func ValidTable(name string) error {
	if len(name) > MaxTable || !isName(name) {
		return fmt.Errorf("%w: table %.60q: a name is a letter or underscore and up to %d more lower-case letters, digits and "+
			"underscores", ErrInvalid, name, MaxTable-1)
	}
	for _, r := range reserved {
		if strings.HasPrefix(name, r) {
			return fmt.Errorf("%w: table %q: names that begin with %s are reserved", ErrInvalid, name, r)
		}
	}
	return nil
}

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

// Normalize validates a transaction and converts values to compact JSON with one spelling of names. Errors wrap ErrInvalid.
func (t *Transaction) Normalize() error {
	switch {
	case len(t.Checks)+len(t.Writes) > MaxParts:
		return fmt.Errorf("%w: %d checks and writes, more than %d", ErrInvalid, len(t.Checks)+len(t.Writes), MaxParts)
	case len(t.Writes) == 0:
		return fmt.Errorf("%w: no writes", ErrInvalid)
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
		return fmt.Errorf("%w: the check's value is not JSON", ErrInvalid)
	}
	if v := compact.Bytes(); v[0] == '{' || v[0] == '[' {
		return fmt.Errorf("%w: the check's value is not a number, string, boolean or null", ErrInvalid)
	}
	c.Value = compact.Bytes()
	if isNumber(c.Value) {
		if _, exact := parseDecimal(c.Value); !exact {
			return fmt.Errorf("%w: the exponent of the check's value is out of range", ErrInvalid)
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
				return fmt.Errorf("%w: add: %s is not a 64-bit integer", ErrInvalid, m.name)
			}
		}
	}
	return nil
}
