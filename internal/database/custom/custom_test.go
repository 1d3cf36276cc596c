package custom

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/redis"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

// minimalDefinition is the shortest valid definition.
const minimalDefinition = `name: demo
server: {start: exec demo, up: "true"}
count: echo 0
clear: "true"
client: {protocol: redis}
`

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":        {"name: demo\n", "client is missing"},
		"a key":          {minimalDefinition + "optoins: {}\n", `did you mean "options"?`},
		"a template":     {strings.Replace(minimalDefinition, "echo 0", `echo {{.Adr}}`, 1), "there is no .Adr"},
		"an option":      {strings.Replace(minimalDefinition, "echo 0", `echo {{.Options.prot}}`, 1) + "options: {port: 1}\n", `there is no "prot"`},
		"a brace":        {strings.Replace(minimalDefinition, "echo 0", `"echo {{.Addr"`, 1), "unclosed action"},
		"an empty step":  {minimalDefinition + "form: [{on: first}]\n", "form[0]: a step needs run, until or stop"},
		"two actions":    {minimalDefinition + "form: [{run: a, until: b}]\n", "exclude each other"},
		"a stop":         {minimalDefinition + "form: [{stop: true}]\n", "stop is allowed in leave only"},
		"a place":        {minimalDefinition + "form: [{run: a, on: all}]\n", `"all" is not one of node, first, other, each`},
		"no leave":       {minimalDefinition + "join: [{run: a}]\n", "join and leave need each other"},
		"no client":      {strings.Replace(minimalDefinition, "{protocol: redis}", "{properties: {a: b}}", 1), "want a protocol or a program"},
		"two clients":    {strings.Replace(minimalDefinition, "{protocol: redis}", "{protocol: redis, program: [a]}", 1), "exclude each other"},
		"a pattern":      {minimalDefinition + "install: {pattern: v1}\n", "one group"},
		"nodes":          {minimalDefinition + "can: {min_nodes: 3, max_nodes: 2}\n", "below min_nodes"},
		"a file outside": {strings.Replace(minimalDefinition, "{start", "{files: {../x: y}, start", 1), "not below the node's directory"},
		"a name":         {strings.Replace(minimalDefinition, "demo", "De mo", 1), "does not match"},
	} {
		_, err := Parse("/dir/mydb.yaml", []byte(test.text))
		var ps strict.Problems
		if !errors.As(err, &ps) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "mydb.yaml:") {
			t.Errorf("%s: error %v, want a position and %q", name, err, test.want)
		}
	}
	if _, err := Parse("/dir/mydb.yaml", []byte(minimalDefinition)); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimalDefinition))
	f.Add([]byte(minimalDefinition + "form: [{run: 'a {{addrs .Members \",\"}}'}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse("/dir/mydb.yaml", text)
		if err == nil && d.noLab == nil && (d.Name == "" || d.Server.Start == "" || d.Count == "") {
			t.Fatalf("accepted %+v", d)
		}
	})
}

func parse(t *testing.T, text string) *Database {
	t.Helper()
	d, err := Parse(filepath.Join(t.TempDir(), "mydb.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return New(d, builtins{"redis": redis.New()})
}

func TestOptionsOfADefinition(t *testing.T) {
	db := parse(t, minimalDefinition+"options: {port: 7, sync: false, mode: fast}\ncan: {min_nodes: 2, max_nodes: 5, scan: true, memory: 1MiB}\nfixed: [0]\n")
	for _, test := range []struct {
		given database.Options
		nodes int
		want  string
	}{
		{nil, 2, ""}, {database.Options{"port": int64(8), "sync": true, "mode": "slow"}, 2, ""}, {database.Options{"port": 8.0}, 2, ""},
		{nil, 1, "at least 2"}, {database.Options{"prot": 8}, 2, "did you mean port?"},
		{database.Options{"port": "eight"}, 2, "is no number"}, {database.Options{"sync": 1}, 2, "is no true or false"},
	} {
		err := db.Check(test.nodes, test.given)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("options %v of %d nodes: %v, want %q", test.given, test.nodes, err, test.want)
		}
	}
	want := database.Capabilities{Scan: true, LazyTables: true, MinNodes: 2, MaxNodes: 5, Memory: 1 << 20}
	if d := cmp.Diff(want, db.Capabilities()); d != "" {
		t.Error(d)
	}
	if fixed := db.Fixed([]string{"n1", "n2"}, nil); len(fixed) != 1 || fixed["n1"] == "" {
		t.Errorf("fixed %v", fixed)
	}
	if db := parse(t, strings.Replace(minimalDefinition, "protocol: redis", "protocol: rediss", 1)); !errors.Is(db.Check(1, nil), ErrDefinition) {
		t.Error("an unknown protocol was accepted")
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "bin/demo-db")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho demo-db v3.2.1 of today\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := minimalDefinition + "install: {programs: [demo-db], version: demo-db --version, advice: build it}\n"
	_, err := parse(t, text).Find("", "")
	if err == nil || advice.Of(err) != "build it" {
		t.Errorf("a missing program: error %v, advice %q", err, advice.Of(err))
	}
	in, err := parse(t, text).Find("", dir)
	if err != nil || in.Version != "3.2.1" || in.Programs["demo-db"] != program || in.Dir != dir {
		t.Errorf("found %+v, %v", in, err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if in, err = parse(t, text).Find("", ""); err != nil || in.Version != "3.2.1" || in.Dir != "" {
		t.Errorf("found %+v, %v in PATH", in, err)
	}
	if _, err := parse(t, strings.Replace(text, "version: demo-db --version", "version: echo none", 1)).Find("", ""); err == nil {
		t.Error("found a version in a directory without programs")
	}
}

// The data that a template can use.
func TestTemplates(t *testing.T) {
	hosts := testhost.Loopback(t, 4)
	db := parse(t, minimalDefinition+"options: {port: 7}\n")
	c := &cluster{def: db.def, Cluster: daemon.NewCluster[host.Host]("demo", database.Env{Nodes: hosts[:3]}), options: map[string]any{"port": 8}}
	d := c.templateData(hosts[3], hosts[1:])
	for text, want := range map[string]string{
		`{{.Node}} {{.Site}} {{.Index}}`:               "n4 s4 3",
		`{{.Dir}}`:                                     filepath.Join(hosts[3].Dir(), "demo"),
		`{{names .Nodes ","}}`:                         "n1,n2,n3",
		`{{names .Members " "}}`:                       "n2 n3 n4",
		`{{names .Others " "}} {{.First.Node}}`:        "n2 n3 n2",
		`{{hostports .Others .Options.port ","}}`:      hosts[1].Addr() + ":8," + hosts[2].Addr() + ":8",
		`{{addrs .Nodes " "}}`:                         hosts[0].Addr() + " " + hosts[1].Addr() + " " + hosts[2].Addr(),
		`{{range .Others}}{{.Node}}={{.Addr}};{{end}}`: "n2=" + hosts[1].Addr() + ";n3=" + hosts[2].Addr() + ";",
		`{{if eq .Index 0}}first{{else}}later{{end}}`:  "later",
	} {
		if got, err := render(text, d); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestKind(t *testing.T) {
	k := NewKind(builtins{"redis": redis.New()})
	for what, err := range map[string]error{
		"check": k.Check(3, nil),
		"find":  func() error { _, err := k.Find("", ""); return err }(),
		"start": func() error { _, err := k.Start(t.Context(), database.Env{}); return err }(),
	} {
		if !errors.Is(err, ErrNotDescribed) || advice.Of(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	all := map[string]database.Database{database.Exec: k}
	if db, err := database.Describe(all, "mydb.yaml", []byte(minimalDefinition)); err != nil || db.Name() != "exec:demo" {
		t.Errorf("described: %v, %v", db, err)
	}
	if _, err := database.Describe(nil, "mydb.yaml", []byte(minimalDefinition)); !errors.Is(err, database.ErrUnknown) {
		t.Errorf("a description without a parser: error %v", err)
	}
	if _, err := k.Open(t.Context(), map[string]string{PropProtocol: "gopher"}); !errors.Is(err, ErrProperty) {
		t.Errorf("an unknown protocol: error %v", err)
	}
	if _, err := k.Open(t.Context(), map[string]string{PropProgram: "not JSON"}); !errors.Is(err, ErrProperty) {
		t.Errorf("a program that is not a list: error %v", err)
	}
}

// A mistake in a template is reported in the terms of the template, with its position.
func TestTemplateErrorsUseUserTerms(t *testing.T) {
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

// loadDefinition reads a definition file.
func loadDefinition(path string) (Definition, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Definition{}, err
	}
	return Parse(path, text)
}
