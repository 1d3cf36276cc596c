package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The notice names exactly the parts of the program, with the versions of go.mod and of the front end's lock file.
func TestNoticeIsCurrent(t *testing.T) {
	parts, err := collectParts(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range parts {
		want = append(want, p.String())
	}
	text, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, listedParts(string(text))); diff != "" {
		t.Errorf("NOTICE is outdated, run make notice: -want +got:\n%s", diff)
	}
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	if _, err := readLicences(dir); err == nil {
		t.Error("a part without a licence was accepted")
	}
	for name, text := range map[string]string{"LICENSE-MIT.txt": "one\r\n", "NOTICE": "two", "licenses.go": "no", "README": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readLicences(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
		t.Errorf("licences: -want +got:\n%s", diff)
	}
}

// listedParts returns the parts that a notice names.
func listedParts(notice string) []string {
	var names []string
	list, _, _ := strings.Cut(notice, "\n===")
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, "- "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
