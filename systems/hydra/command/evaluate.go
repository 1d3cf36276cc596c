package command

import (
	"bytes"
	"encoding/json"
)

// Row is the state of a row.
type Row struct {
	Version uint64
	Value   []byte // compact JSON, nil for no row
}

// State is the tables that Evaluate reads and changes.
type State interface {
	HasTable(table string) bool
	Row(table, key string) Row
	// SetRow writes a row; a nil value removes it.
	SetRow(table, key string, row Row)
	CreateTable(table string)
	// ClearTable removes all rows of a table, DropTable the table as well.
	ClearTable(table string)
	DropTable(table string)
}

// Evaluate executes all writes of a transaction, or none. The result depends only on the arguments. The caller handles
// idempotency keys.
func Evaluate(t *Transaction, index uint64, s State) Outcome {
	load := new(weight)
	for i := range t.Checks {
		c := &t.Checks[i]
		if !s.HasTable(c.Table) {
			return Outcome{Code: UnknownTable, Failed: i}
		}
		row := s.Row(c.Table, c.Key)
		if load.add(len(row.Value)) {
			return Outcome{Code: TooLarge, Failed: i}
		}
		if !checkHolds(c, row) {
			return Outcome{Code: CheckFailed, Failed: i}
		}
	}
	if code, failed, ok := validateWrites(t, s, load); !ok {
		return Outcome{Code: code, Failed: failed}
	}
	for i := range t.Writes {
		performWrite(&t.Writes[i], index, s)
	}
	return Outcome{Code: OK, Version: index}
}

// weight is the number of bytes of the rows that a transaction has touched.
type weight int

// add reports whether the sum exceeds MaxWeight.
func (w *weight) add(n int) bool {
	*w += weight(n)
	return *w > MaxWeight
}

type rowKey struct{ table, key string }

// validateWrites returns the first write that cannot be executed on the result of the previous ones.
func validateWrites(t *Transaction, s State, load *weight) (code string, failed int, ok bool) {
	var rows map[rowKey][]byte // as the writes so far leave them
	tables := make(map[string]bool, 1)
	for i := range t.Writes {
		w := &t.Writes[i]
		has, known := tables[w.Table]
		if !known {
			has = s.HasTable(w.Table)
		}
		switch w.Do {
		case CreateTable:
			has = true
		case DropTable:
			has = false
		default:
			if !has {
				return UnknownTable, i, false
			}
		}
		tables[w.Table] = has
		if w.Do == Merge || w.Do == Add || len(t.Writes) > 1 {
			if rows == nil {
				rows = make(map[rowKey][]byte, len(t.Writes))
			}
			if code := validateWrite(w, s, rows, load); code != "" {
				return code, i, false
			}
		}
	}
	return "", 0, true
}

// validateWrite returns the code of a write that cannot be executed, or "". rows holds earlier results.
func validateWrite(w *Write, s State, rows map[rowKey][]byte, load *weight) string {
	switch w.Do {
	case CreateTable:
		return ""
	case DropTable, ClearTable:
		for p := range rows {
			if p.table == w.Table {
				delete(rows, p)
			}
		}
		rows[rowKey{w.Table, ""}] = []byte{} // the empty key marks a cleared table
		return ""
	}
	at := rowKey{w.Table, w.Key}
	have, seen := rows[at]
	if !seen && (w.Do == Merge || w.Do == Add) {
		if _, cleared := rows[rowKey{w.Table, ""}]; !cleared {
			have = s.Row(w.Table, w.Key).Value
		}
	}
	if (w.Do == Merge || w.Do == Add) && load.add(len(have)) {
		return TooLarge
	}
	value, ok := computeValue(w, have)
	switch {
	case !ok:
		return BadField
	case len(value) > MaxValue, load.add(len(value)):
		return TooLarge
	}
	rows[at] = value
	return ""
}

var emptyObject = []byte("{}")

func computeValue(w *Write, have []byte) (value []byte, ok bool) {
	switch w.Do {
	case Put:
		return w.Value, true
	case Delete:
		return nil, true
	}
	if have == nil {
		have = emptyObject
	}
	if w.Do == Add {
		return addToObject(have, w.Value)
	}
	return mergeObjects(have, w.Value), true
}

func performWrite(w *Write, index uint64, s State) {
	switch w.Do {
	case CreateTable:
		s.CreateTable(w.Table)
	case DropTable:
		s.DropTable(w.Table)
	case ClearTable:
		s.ClearTable(w.Table)
	case Put, Delete:
		s.SetRow(w.Table, w.Key, Row{index, w.Value})
	default:
		value, _ := computeValue(w, s.Row(w.Table, w.Key).Value) // validated
		s.SetRow(w.Table, w.Key, Row{index, value})
	}
}

func checkHolds(c *Check, row Row) bool {
	there := row.Value != nil
	switch c.Is {
	case Exists:
		return there
	case Absent:
		return !there
	case Version:
		return there && row.Version == c.Version || !there && c.Version == 0
	}
	var have []byte
	if there {
		list := splitMembers(row.Value, make([]member, 0, 16))
		if i := findMember(list, quoteName(c.Field)); i >= 0 {
			have = list[i].value
		}
	}
	order, alike := compare(have, c.Value)
	switch c.Is {
	case Equal:
		return alike && order == 0
	case NotEqual:
		return !alike || order != 0
	case Less:
		return alike && isOrdered(have) && order < 0
	case LessOrEqual:
		return alike && isOrdered(have) && order <= 0
	case Greater:
		return alike && isOrdered(have) && order > 0
	case GreaterOrEqual:
		return alike && isOrdered(have) && order >= 0
	}
	return false
}

func isOrdered(v []byte) bool {
	return len(v) > 0 && v[0] == '"' || isNumber(v)
}

// compare orders two scalars of the same type. Other types, arrays and objects are not comparable.
// Strings compare by bytes.
func compare(a, b []byte) (order int, alike bool) {
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0, false
	case a[0] == '"' && b[0] == '"':
		var x, y string
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return 0, false
		}
		return bytes.Compare([]byte(x), []byte(y)), true
	case a[0] == '"' || b[0] == '"' || !isOrdered(a) || !isOrdered(b):
		same := bytes.Equal(a, b)
		return 0, same && a[0] != '{' && a[0] != '['
	}
	return compareNumbers(a, b), true
}

func sign(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}
