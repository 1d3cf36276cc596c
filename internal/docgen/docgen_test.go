package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"skerry/internal/database/all"
	"skerry/internal/experiment"
)

const root = "../.."

func TestCommittedFilesAreCurrent(t *testing.T) {
	files, err := Files(root+"/docs", root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is outdated: run make docs", name)
		}
	}
}

// The folder docs/commands has the index and the pages of all programs, and no page of a removed command.
func TestCommandPagesAreCurrent(t *testing.T) {
	pages, err := commandPages(root)
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for name, page := range pages {
		want[name] = string(page)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/commands/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		page, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(f)] = string(page)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/commands is outdated, run make docs: -want +got:\n%s", diff)
	}
}

// The front end uses only types generated from Go's.
func TestTypesWithoutPackage(t *testing.T) {
	types, err := TypeScript(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(root, frontEndDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if types[f.Name()] == nil {
			t.Errorf("%s/%s belongs to no package: remove it", frontEndDir, f.Name())
		}
	}
}

// Every database has a valid smoke experiment, and removed databases have none.
func TestSmokeExperiments(t *testing.T) {
	want := make(map[string]bool)
	for _, a := range all.Registry() {
		file := filepath.Join(root, smokeDir, a.Name+".yaml")
		want[file] = true
		if v := experiment.Validate(file, nil, false, all.Databases()); !v.Valid {
			t.Errorf("%s: %+v", file, v.Problems)
		}
		if !strings.HasSuffix(a.Smoke.Text, ".") {
			t.Errorf("%s: the purpose of its smoke experiment, %q, is not a sentence", a.Name, a.Smoke.Text)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, smokeDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(smokeOrigin)) && !want[f] {
			t.Errorf("%s is of no database", f)
		}
	}
}

func TestReplaceTable(t *testing.T) {
	const head, tail = "a\n<!-- Made by \"make docs\" from x. -->\n", "\n| another |\n"
	for name, tt := range map[string]struct {
		page, want string
		err        error
	}{
		"a new table":   {head + tail, head + "| t |\n" + tail, nil},
		"another table": {head + "| s |\n| s |\n" + tail, head + "| t |\n" + tail, nil},
		"no mark":       {"a\n", "", ErrMark},
	} {
		got, err := replaceTable("x", func() string { return "| t |\n" })([]byte(tt.page))
		if string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Every key has a description, or an editor shows nothing for it.
func TestSchemaDescribesEverything(t *testing.T) {
	schema, err := experimentSchema(root)
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	check := func(name string, s *jsonschema.Schema) {
		if len(s.AnyOf) == 2 {
			s = s.AnyOf[1]
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			keys++
			if !strings.HasSuffix(p.Value.Description, ".") {
				t.Errorf("%s.%s: the description %q is not a sentence", name, p.Key, p.Value.Description)
			}
		}
	}
	check("", schema)
	for name, s := range schema.Definitions {
		check(name, s)
	}
	if keys < 80 {
		t.Errorf("the schema has %d keys, want all of them", keys)
	}
}
