package etcd

import (
	"errors"
	"slices"
	"strings"

	"skerry/internal/base/varint"
	"skerry/internal/load"
)

// errRecord says that a value is none that this package wrote.
var errRecord = errors.New("the value is not a record")

// defaultTable is YCSB's.
const defaultTable = "usertable"

// separator stands between a table's name and a key.
const separator = "/"

// recordKey is where a record is.
func recordKey(table, key string) string {
	if table == "" {
		table = defaultTable
	}
	return table + separator + key
}

// tableEnd is the key behind all of a table's.
func tableEnd(table string) string {
	if table == "" {
		table = defaultTable
	}
	return table + string(rune(separator[0]+1))
}

// keySuffix is the record's own key in a full one.
func keySuffix(full []byte, table string) string {
	if table == "" {
		table = defaultTable
	}
	return strings.TrimPrefix(string(full), table+separator)
}

// appendRecord appends a record's value: count { len(name) name len(value) value }.
func appendRecord(dst []byte, fields []load.Field) []byte {
	dst = varint.Append(dst, uint64(len(fields)))
	for _, f := range fields {
		dst = varint.AppendText(varint.AppendText(dst, f.Name), f.Value)
	}
	return dst
}

// decoder reads records. Those of a table have the same fields, mostly in the same order:
// the strings made for the last record serve for the next one.
type decoder struct{ names []string }

// maxNames bounds the memory that a record with very many fields leaves behind.
const maxNames = 1024

// fields appends the wanted fields of a record, all when none is named. They refer to
// value.
func (d *decoder) fields(dst []load.Field, value []byte, wanted []string) ([]load.Field, error) {
	r := varint.NewReader(value)
	for i := range r.Count(2) { // the lengths of name and value
		name, text := r.Bytes(), r.Bytes()
		if r.Bad() {
			return dst, errRecord
		}
		if len(wanted) == 0 || containsText(wanted, name) {
			dst = append(dst, load.Field{Name: d.name(i, name), Value: text})
		}
	}
	if !r.Done() {
		return dst, errRecord
	}
	return dst, nil
}

func containsText(list []string, text []byte) bool {
	return slices.ContainsFunc(list, func(s string) bool { return s == string(text) })
}

func (d *decoder) name(i int, text []byte) string {
	if i >= maxNames {
		return string(text)
	}
	for i >= len(d.names) {
		d.names = append(d.names, "")
	}
	if d.names[i] != string(text) {
		d.names[i] = string(text)
	}
	return d.names[i]
}

// mergeFields puts values into a record's fields.
func mergeFields(fields, values []load.Field) []load.Field {
	for _, v := range values {
		i := slices.IndexFunc(fields, func(f load.Field) bool { return f.Name == v.Name })
		if i < 0 {
			fields = append(fields, v)
		} else {
			fields[i].Value = v.Value
		}
	}
	return fields
}
