package custom

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/base/strict"
)

// A template's mistake is told in its own words, and where it stands.
func TestTemplateErrorsAreInTheUsersWords(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want   string
		line, column int
	}{
		"a field":         {strings.Replace(minimalDefinition, "echo 0", `echo {{.Adr}}`, 1), "count: {{.Adr}}: there is no .Adr", 3, 15},
		"in quotes":       {strings.Replace(minimalDefinition, "echo 0", `"echo {{.First.Adr}}"`, 1), "{{.First.Adr}}: there is no .Adr", 3, 16},
		"on a line of it": {strings.Replace(minimalDefinition, "echo 0", "|\n  echo 1\n  echo {{.Adr}}", 1), "there is no .Adr", 5, 10},
		"an option":       {strings.Replace(minimalDefinition, "echo 0", `echo {{.Options.prot}}`, 1) + "options: {port: 1}\n", `there is no "prot"`, 3, 15},
		"a function":      {strings.Replace(minimalDefinition, "echo 0", `echo {{.Addr | foo}}`, 1), "there is no function foo; there are addrs, hostports, names", 3, 23},
		"a call":          {strings.Replace(minimalDefinition, "echo 0", `echo {{addrs .Members}}`, 1), `addrs is written as {{addrs .Members ","}}`, 3, 15},
		"no end":          {strings.Replace(minimalDefinition, "echo 0", `echo {{if .Addr}}`, 1), "an {{if}}, {{with}} or {{range}} has no {{end}}", 3, 13},
		"not closed":      {strings.Replace(minimalDefinition, "echo 0", `echo {{.Addr}} {{.Dir} x`, 1), "{{.Dir} x cannot be read: bad character", 3, 23},
		"no operand":      {strings.Replace(minimalDefinition, "echo 0", `echo {{.Addr}} {{|}} {{.Dir}}`, 1), "{{|}} cannot be read", 3, 23},
	} {
		_, err := Parse("/dir/demo.yaml", []byte(tt.text))
		var ps strict.Problems
		if !errors.As(err, &ps) || !strings.Contains(ps[0].Message, tt.want) || strings.Contains(ps[0].Message, "own.data") || ps[0].Pos.Line != tt.line || ps[0].Pos.Column != tt.column {
			t.Errorf("%s: %v, at %+v", name, err, ps)
		}
	}
}
