package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

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
	if codeOf(checkCodes, c.Is) == 255 {
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
	value, err := normalObject(w.Value)
	if err != nil {
		return err
	}
	w.Value = value
	if w.Do == Add {
		for _, m := range members(value, nil) {
			if _, err := strconv.ParseInt(string(m.value), 10, 64); err != nil {
				return fmt.Errorf("%w: add: %s is no whole number of 64 bits", ErrInvalid, m.name)
			}
		}
	}
	return nil
}
