package ycsb

import "strconv"

// Field is one named value of a record.
type Field struct {
	Name  string
	Value []byte
}

func itoa(i int) string { return strconv.Itoa(i) }
