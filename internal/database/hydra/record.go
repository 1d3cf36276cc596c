package hydra

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"skerry/internal/load"
)

// encoded is the prefix of values in base64.
const encoded = "base64:"

// errRecord marks a row that is not a record.
var errRecord = errors.New("the row is not a record: a field is not a string")

func appendRecord(dst []byte, fields []load.Field) []byte {
	dst = append(dst, '{')
	for i, f := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, f.Name)
		dst = append(dst, ':')
		if utf8.Valid(f.Value) && !strings.HasPrefix(string(f.Value), encoded) {
			dst = appendText(dst, f.Value)
			continue
		}
		dst = append(dst, '"')
		dst = append(dst, encoded...)
		dst = base64.StdEncoding.AppendEncode(dst, f.Value)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

const hex = "0123456789abcdef"

// appendText appends UTF-8 as a JSON string.
func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// decoder reads rows' values. The fields of a record are valid until the next one.
type decoder struct{ buffer []byte }

// fields appends the wanted fields of a record, all when none is named.
func (d *decoder) fields(dst []load.Field, value []byte, wanted []string) ([]load.Field, error) {
	d.buffer = slices.Grow(d.buffer[:0], len(value)) // texts never grow: no field moves
	rest := value
	if len(rest) < 2 || rest[0] != '{' {
		return dst, errRecord
	}
	for rest = rest[1:]; len(rest) > 0 && rest[0] != '}'; {
		if rest[0] == ',' {
			rest = rest[1:]
		}
		name, after, err := d.readString(rest)
		if err != nil || len(after) == 0 || after[0] != ':' {
			return dst, errors.Join(errRecord, err)
		}
		text, after, err := d.readString(after[1:])
		if err != nil {
			return dst, err
		}
		rest = after
		if len(wanted) > 0 && !slices.Contains(wanted, string(name)) {
			continue
		}
		if coded, ok := strings.CutPrefix(string(text), encoded); ok {
			if text, err = base64.StdEncoding.DecodeString(coded); err != nil {
				return dst, fmt.Errorf("field %s: %w", name, err)
			}
		}
		dst = append(dst, load.Field{Name: string(name), Value: text})
	}
	return dst, nil
}

func (d *decoder) readString(b []byte) (readString, rest []byte, err error) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, errRecord
	}
	plain := true
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			plain = false
			i++
		case '"':
			if plain {
				at := len(d.buffer)
				d.buffer = append(d.buffer, b[1:i]...)
				return d.buffer[at:len(d.buffer):len(d.buffer)], b[i+1:], nil
			}
			var s string
			if err := json.Unmarshal(b[:i+1], &s); err != nil {
				return nil, nil, fmt.Errorf("%w: %w", errRecord, err)
			}
			return []byte(s), b[i+1:], nil
		}
	}
	return nil, nil, errRecord
}
