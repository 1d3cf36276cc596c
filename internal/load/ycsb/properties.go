package ycsb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Properties are a workload's settings by name, as a property file has them.
type Properties map[string]string

// Entry is a setting in a property file, which begins on Line.
type Entry struct {
	Name, Value  string
	Line         int
	OverriddenBy int // the line that sets the name again and wins; 0: none does
}

// OverrideReason says that a later line of the file sets the name again, "" if none does.
func (e Entry) OverrideReason() string {
	if e.OverriddenBy == 0 {
		return ""
	}
	return fmt.Sprintf("line %d sets it again", e.OverriddenBy)
}

// ErrProperties marks text that is not a property file.
var ErrProperties = errors.New("not a property file")

// maxProperties bounds a property file's size: far above any real one.
const maxProperties = 16 << 20

// ReadProperties reads Java's property format: key=value, key: value or key value,
// comments with # and !, \ at the end of a line to continue it, and the escapes \t \n
// \r \f and \uXXXX. Unlike Java it reads UTF-8. A key given twice has its last value.
func ReadProperties(r io.Reader) (Properties, error) {
	entries, err := ReadEntries(r)
	if err != nil {
		return nil, err
	}
	return CollectEntries(entries), nil
}

// CollectEntries returns the properties that entries set, the last of a name.
func CollectEntries(entries []Entry) Properties {
	p := make(Properties, len(entries))
	for _, e := range entries {
		p[e.Name] = e.Value
	}
	return p
}

// ReadEntries is ReadProperties for every setting with its line, in the order of the file.
func ReadEntries(r io.Reader) (entries []Entry, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxProperties+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProperties {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrProperties, maxProperties)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrProperties)
	}
	last := map[string]int{} // entry by name
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, len(text)+1)
	s.Split(scanLines)
	for n := 1; s.Scan(); n++ {
		at := n
		line := trimLeft(s.Text())
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for endsInBackslash(line) {
			line = line[:len(line)-1]
			if !s.Scan() {
				break
			}
			n++
			line += trimLeft(s.Text())
		}
		rawKey, rawValue := splitEntry(line)
		key, err := unescape(rawKey)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrProperties, at, err)
		}
		value, err := unescape(rawValue)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %s: %w", ErrProperties, at, key, err)
		}
		if i, given := last[key]; given {
			entries[i].OverriddenBy = at
		}
		last[key] = len(entries)
		entries = append(entries, Entry{Name: key, Value: value, Line: at})
	}
	return entries, s.Err()
}

// scanLines splits at \n, \r\n and \r.
func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if atEOF && len(data) == 0 {
		return 0, nil, nil
	}
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF:
		return len(data), data, nil
	case i < 0 || data[i] == '\r' && i+1 == len(data) && !atEOF:
		return 0, nil, nil // more is needed to know
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	}
	return i + 1, data[:i], nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

func trimLeft(s string) string { return strings.TrimLeft(s, " \t\f") }

// continues: the line ends in an odd number of backslashes.
func endsInBackslash(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// splitEntry finds the end of the key: the first blank, = or : without a backslash.
func splitEntry(line string) (key, value string) {
	i := 0
	for i < len(line) && !isBlank(line[i]) && line[i] != '=' && line[i] != ':' {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	key, value = line[:i], trimLeft(line[i:])
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = trimLeft(value[1:])
	}
	return key, value
}

var errEscape = errors.New(`\u needs four hexadecimal digits`)

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, used, err := parseUnicode(s[i-1:])
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			i += used - 2
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// parseUnicode reads \uXXXX, or two that form a surrogate pair, at the start of s.
func parseUnicode(s string) (r rune, used int, err error) {
	one := func(s string) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(s[2:6], 16, 16)
		return rune(v), err == nil
	}
	r, ok := one(s)
	if !ok {
		return 0, 0, errEscape
	}
	if utf16.IsSurrogate(r) {
		if low, ok := one(s[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12, nil
			}
		}
	}
	return r, 6, nil
}

// Merge returns p with the settings of each of more over it, the last strongest.
func (p Properties) Merge(more ...Properties) Properties {
	out := make(Properties, len(p))
	for _, m := range append([]Properties{p}, more...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
