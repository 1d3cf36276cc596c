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

// Properties are a workload's settings by name.
type Properties map[string]string

// Entry is a setting in a property file, which begins on Line.
type Entry struct {
	Name, Value  string
	Line         int
	OverriddenBy int // line of a later setting of the same name, 0 for none
}

// OverrideReason names the later line that overrides the entry, "" if none does.
func (e Entry) OverrideReason() string {
	if e.OverriddenBy == 0 {
		return ""
	}
	return fmt.Sprintf("line %d sets it again", e.OverriddenBy)
}

var errProperties = errors.New("not a property file")

const maxProperties = 16 << 20

// CollectEntries returns the properties of entries. The last value of a name applies.
func CollectEntries(entries []Entry) Properties {
	p := make(Properties, len(entries))
	for _, e := range entries {
		p[e.Name] = e.Value
	}
	return p
}

// ReadEntries reads Java's property format: key=value, key: value or key value, comments with # and !,
// \ at the end of a line to continue it, and the escapes \t \n \r \f and \uXXXX. Unlike Java, it reads
// UTF-8. The entries are in the order of the file.
func ReadEntries(r io.Reader) (entries []Entry, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxProperties+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProperties {
		return nil, fmt.Errorf("%w: larger than %d bytes", errProperties, maxProperties)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: not UTF-8", errProperties)
	}
	last := map[string]int{} // index of the last entry by name
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
			return nil, fmt.Errorf("%w: line %d: %w", errProperties, at, err)
		}
		value, err := unescape(rawValue)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %s: %w", errProperties, at, key, err)
		}
		if i, given := last[key]; given {
			entries[i].OverriddenBy = at
		}
		last[key] = len(entries)
		entries = append(entries, Entry{Name: key, Value: value, Line: at})
	}
	return entries, s.Err()
}

func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if atEOF && len(data) == 0 {
		return 0, nil, nil
	}
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF:
		return len(data), data, nil
	case i < 0 || data[i] == '\r' && i+1 == len(data) && !atEOF:
		return 0, nil, nil // need more data
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	}
	return i + 1, data[:i], nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

func trimLeft(s string) string { return strings.TrimLeft(s, " \t\f") }

// endsInBackslash reports an odd number of backslashes at the end, which continue the line.
func endsInBackslash(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// splitEntry splits at the end of the key: the first blank, = or : without a backslash.
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

// parseUnicode parses \uXXXX, or a surrogate pair of two, at the start of s.
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

// Merge returns p overlaid with each of more. The last value applies.
func (p Properties) Merge(more ...Properties) Properties {
	out := make(Properties, len(p))
	for _, m := range append([]Properties{p}, more...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
