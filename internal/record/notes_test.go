package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	empty, err := ReadNotes(dir)
	noError(t, err)
	first, err := WriteNotes(dir, Notes{Revision: empty.Revision, Note: "  <b>slow</b> disk\n",
		Tags: []string{" baseline ", "", "baseline", "große Ω"}})
	noError(t, err)
	want := Notes{Schema: NotesSchema, Revision: 1, Note: "<b>slow</b> disk", Tags: []string{"baseline", "große Ω"}}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreFields(Notes{}, "Changed")); diff != "" {
		t.Error(diff)
	}
	read, err := ReadNotes(dir)
	noError(t, err)
	if diff := cmp.Diff(want, read, cmpopts.IgnoreFields(Notes{}, "Changed")); diff != "" {
		t.Error(diff)
	}
	if _, err := WriteNotes(dir, Notes{Note: "of another browser tab"}); !errors.Is(err, ErrChanged) {
		t.Errorf("over a newer revision: %v", err)
	}
	entries, err := os.ReadDir(dir)
	noError(t, err)
	if len(entries) != 1 {
		t.Errorf("leftover files: %v", entries)
	}
}

func TestInvalidNotes(t *testing.T) {
	for name, n := range map[string]Notes{
		"too long": {Note: strings.Repeat("x", noteBytes+1)}, "not text": {Note: "\xff"}, "a tag of two lines": {Tags: []string{"a\nb"}},
		"a list of tags": {Tags: []string{"a,b"}}, "a long tag": {Tags: []string{strings.Repeat("x", tagBytes+1)}},
		"many tags": {Tags: strings.Split(strings.Repeat("x", 40),
			"")}, "many different tags": {Tags: strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN", "")},
	} {
		_, err := WriteNotes(t.TempDir(), n)
		if wrong := name != "many tags"; wrong != errors.Is(err, ErrNotes) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamagedNotesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, notesFile), []byte(`{"schema": "skerry/no`), 0o644))
	if _, err := ReadNotes(dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	_, err := WriteNotes(dir, Notes{Note: "x"})
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(dir, notesFile), []byte(`{"schema": "skerry/notes/v9"}`), 0o644))
	if _, err := WriteNotes(dir, Notes{Note: "x"}); !errors.Is(err, ErrNewer) {
		t.Errorf("notes of a newer skerry: %v", err)
	}
}
