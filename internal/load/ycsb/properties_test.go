package ycsb

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readProperties(text string) (Properties, error) {
	entries, err := ReadEntries(strings.NewReader(text))
	return CollectEntries(entries), err
}

func TestReadProperties(t *testing.T) {
	for _, c := range []struct {
		text string
		want Properties
	}{
		{"", Properties{}},
		{"a=1", Properties{"a": "1"}},
		{"a = 1 \nb:2\nc 3\n", Properties{"a": "1 ", "b": "2", "c": "3"}},
		{"# comment\n! another \\\na=1", Properties{"a": "1"}},
		{"  \t\n   a=1\r\nb=2\rc=3", Properties{"a": "1", "b": "2", "c": "3"}},
		{"a=1,\\\n   2,\\\n\t3", Properties{"a": "1,2,3"}},
		{"a=1\\\\\nb=2", Properties{"a": `1\`, "b": "2"}},
		{"a=x\\", Properties{"a": "x"}},
		{`k\ e\:y\=x = v`, Properties{"k e:y=x": "v"}},
		{"a", Properties{"a": ""}},
		{"a==b", Properties{"a": "=b"}},
		{"a:=b", Properties{"a": "=b"}},
		{"a  :  b", Properties{"a": "b"}},
		{`a=\t\n\r\f\q\u0041`, Properties{"a": "\t\n\r\fqA"}},
		{`a=\ud83d\ude00!`, Properties{"a": "😀!"}},
		{"ä=ö", Properties{"ä": "ö"}},
		{"a=1\na=2", Properties{"a": "2"}},
		{"fieldlengthhistogram=dir/my file.txt", Properties{"fieldlengthhistogram": "dir/my file.txt"}},
	} {
		got, err := readProperties(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
	}
}

func TestPropertyErrorsHaveLine(t *testing.T) {
	for text, want := range map[string]string{
		"a=1\n\nb=\\u12":           "line 3: b",
		"a=1\n# c\nb\\u00zz=1":     "line 3",
		"\xff\xfe":                 "not UTF-8",
		"a=x\\\n  y\\\n z\nb=\\uZ": "line 4",
	} {
		_, err := readProperties(text)
		if !errors.Is(err, errProperties) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMerge(t *testing.T) {
	file := Properties{"a": "1", "b": "1"}
	got := file.Merge(Properties{"b": "2", "c": "2"}, Properties{"c": "3"})
	if d := cmp.Diff(Properties{"a": "1", "b": "2", "c": "3"}, got); d != "" {
		t.Error(d)
	}
	if file["b"] != "1" {
		t.Error("Merge changed its receiver")
	}
}

// Properties that were read, escaped and written are read again unchanged.
func FuzzReadProperties(f *testing.F) {
	for _, s := range []string{"a=1", "a\\\n b:c", "# x\n!y", `\u0041=\ud83d\ude00`, "a=\\", "\r\n=\r", "k\\ e y"} {
		f.Add(s)
	}
	escape := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			switch r {
			case '\n':
				b.WriteString(`\n`)
			case '\r':
				b.WriteString(`\r`)
			case '\t', '\f', ' ', '=', ':', '#', '!', '\\':
				if r == '\t' {
					b.WriteString(`\t`)
				} else if r == '\f' {
					b.WriteString(`\f`)
				} else {
					b.WriteByte('\\')
					b.WriteRune(r)
				}
			default:
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readProperties(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for k, v := range p {
			b.WriteString(escape(k) + "=" + escape(v) + "\n")
		}
		again, err := readProperties(b.String())
		if err != nil {
			t.Fatalf("%q: %v", b.String(), err)
		}
		if d := cmp.Diff(p, again); d != "" {
			t.Error(d)
		}
		_, _, _ = Parse(p) // must not panic
	})
}
