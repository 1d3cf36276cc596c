package database

import (
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
)

// SettingReader reads the options of an experiment or the properties of a client: scalars by
// name. It keeps the first error, so that a series of reads needs one check:
//
//	r := database.ReadOptions(ErrOption, given, "port", "election_timeout")
//	o := options{port: r.Int("port", 1, 65535, 2379), election: r.Duration("election_timeout", 0)}
//	return o, r.Err()
type SettingReader struct {
	bad   error // what errors wrap
	given map[string]string
	err   error
}

// ReadOptions reads a database's options. An unknown name is an error. Errors wrap bad.
func ReadOptions(bad error, given map[string]any, names ...string) *SettingReader {
	r := &SettingReader{bad: bad, given: make(map[string]string, len(given))}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, k) && r.err == nil {
			r.err = fmt.Errorf("%w: unknown %s%s", bad, k, SpellingHint(k, names))
		}
		r.given[k] = scalarText(given[k])
	}
	return r
}

// ReadProperties reads a client's properties. Unknown names with the prefix are errors. Errors wrap bad.
func ReadProperties(bad error, prefix string, given map[string]string, names ...string) *SettingReader {
	r := &SettingReader{bad: bad, given: make(map[string]string, len(given))}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if strings.HasPrefix(k, prefix) && !slices.Contains(names, k) && r.err == nil {
			r.err = fmt.Errorf("%w: unknown %s%s", bad, k, SpellingHint(k, names))
		}
		if v := strings.TrimSpace(given[k]); v != "" {
			r.given[k] = v
		}
	}
	return r
}

// scalarText formats a scalar as YAML, JSON or --set writes it. JSON has no integers.
func scalarText(v any) string {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// SpellingHint suggests the nearest known word, or lists all of them.
func SpellingHint(word string, known []string) string {
	if n := suggest.Nearest(word, known); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return "; known: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Err returns the first error.
func (r *SettingReader) Err() error { return r.err }

// Has reports whether a setting is present.
func (r *SettingReader) Has(name string) bool { _, ok := r.given[name]; return ok }

// Reject records that a setting's value is not of the wanted form.
func (r *SettingReader) Reject(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %q is not %s", r.bad, name, r.given[name], want)
	}
}

// Text returns a setting unchanged.
func (r *SettingReader) Text(name, missing string) string {
	if s, ok := r.given[name]; ok {
		return s
	}
	return missing
}

// Int returns a whole number from low to high.
func (r *SettingReader) Int(name string, low, high, missing int) int {
	s, ok := r.given[name]
	if !ok {
		return missing
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		r.Reject(name, fmt.Sprintf("a whole number from %d to %d", low, high))
		return missing
	}
	return n
}

// Bool returns true or false.
func (r *SettingReader) Bool(name string, missing bool) bool {
	switch s := r.given[name]; {
	case !r.Has(name):
	case slices.Contains([]string{"true", "True", "TRUE", "yes", "on", "1"}, s):
		return true
	case slices.Contains([]string{"false", "False", "FALSE", "no", "off", "0"}, s):
		return false
	default:
		r.Reject(name, "true or false")
	}
	return missing
}

// Duration returns a time with its unit, at least one millisecond.
func (r *SettingReader) Duration(name string, missing time.Duration) time.Duration {
	s, ok := r.given[name]
	if !ok {
		return missing
	}
	d, err := unit.ParseDuration(s)
	if err != nil || d < time.Millisecond {
		r.Reject(name, "a time with its unit (2s, 500ms)")
		return missing
	}
	return d
}

// Milliseconds returns a time given as a whole number of milliseconds, as in YCSB's bindings.
func (r *SettingReader) Milliseconds(name string, missing time.Duration) time.Duration {
	return time.Duration(r.Int(name, 1, math.MaxInt32, int(missing/time.Millisecond))) * time.Millisecond
}

// Bytes returns an amount of memory or storage.
func (r *SettingReader) Bytes(name string, missing int64) int64 {
	s, ok := r.given[name]
	if !ok {
		return missing
	}
	n, err := unit.ParseBytes(s)
	if err != nil || n <= 0 {
		r.Reject(name, "an amount with its unit (256MiB)")
		return missing
	}
	return n
}

// Choice returns one of the words.
func (r *SettingReader) Choice(name, missing string, of ...string) string {
	s, ok := r.given[name]
	if !ok {
		return missing
	}
	if !slices.Contains(of, s) {
		r.Reject(name, "one of "+strings.Join(of, ", "))
		return missing
	}
	return s
}

// List returns the elements of a comma-separated list.
func (r *SettingReader) List(name string) []string {
	var list []string
	for s := range strings.SplitSeq(r.given[name], ",") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// Addresses returns a list of host:port, with a default port. An empty list is an error.
func (r *SettingReader) Addresses(name string, port int) []string {
	list := r.List(name)
	for i, a := range list {
		if _, _, err := net.SplitHostPort(a); err != nil {
			a = net.JoinHostPort(strings.Trim(a, "[]"), strconv.Itoa(port))
		}
		h, p, err := net.SplitHostPort(a)
		if n, bad := strconv.ParseUint(p, 10, 16); err != nil || bad != nil || n == 0 || h == "" {
			r.Reject(name, "a list of host:port")
		}
		list[i] = a
	}
	if len(list) == 0 && r.err == nil {
		r.err = fmt.Errorf("%w: %s is missing (host:port,host:port,...)", r.bad, name)
	}
	return list
}
