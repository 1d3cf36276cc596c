package database

// FieldNames converts the field names of records to strings for one worker. Records mostly have the same fields in
// the same order, so the strings of the previous record are reused. The zero value is ready.
type FieldNames struct{ names []string }

// maxFieldNames bounds the memory that a record with very many fields leaves behind.
const maxFieldNames = 1024

// String returns the name of a record's i-th field as a string.
func (n *FieldNames) String(i int, text []byte) string {
	if i >= maxFieldNames {
		return string(text)
	}
	for i >= len(n.names) {
		n.names = append(n.names, "")
	}
	if n.names[i] != string(text) {
		n.names[i] = string(text)
	}
	return n.names[i]
}
