package mongodb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/install"
	"skerry/test/testkit"
)

// program creates a program that answers --version and otherwise runs the script.
func program(t *testing.T, dir, name, version, script string) {
	t.Helper()
	text := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" + version + "'; exit; fi\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// refused registers unusable programs and checks the errors.
func refused(t *testing.T, dir string, words ...string) {
	t.Helper()
	_, err := install.Store{Dir: t.TempDir()}.Register(t.Context(), Recipe, dir)
	if err == nil {
		t.Fatal("they are in use")
	}
	for _, w := range append(words, filepath.Join(dir, "mongod")) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not contain %q: %v", w, err)
		}
	}
	if advice.Of(err) == "" {
		t.Errorf("no advice with %v", err)
	}
}

// Programs that cannot form a cluster are rejected, with the messages of MongoDB 4.2.
func TestTryRefusesUnfitPrograms(t *testing.T) {
	for _, test := range []struct {
		name, version, script string
		words                 []string
	}{
		{"too old", "db version v3.6.23", "exit 1", []string{"3.6.23", "too old", "4.2"}},
		{"no replica sets", "db version v4.2.9", "echo \"Error parsing command line: unrecognised option '--replSet'\"; exit 2",
			[]string{"4.2.9", "unrecognised option '--replSet'", "exit status 2"}},
		{"unknown parameter", "db version v4.2.9", "echo \"Failed global initialization: BadValue: Unknown --setParameter 'x'\"; exit 1",
			[]string{"4.2.9", "Unknown --setParameter"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			program(t, dir, "mongod", test.version, test.script)
			refused(t, dir, test.words...)
		})
	}
	t.Run("another architecture", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "mongod"), []byte("\x7fELF of no processor"), 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "exec format error")
	})
	t.Run("a mongos of another version", func(t *testing.T) {
		dir := t.TempDir()
		program(t, dir, "mongod", "db version v7.0.14", "exit 1")
		program(t, dir, "mongos", "mongos version v6.0.1", "exit 1")
		refused(t, dir, "7.0.14", "6.0.1")
	})
}

// A real mongod is accepted, and rejected with options that cannot form a cluster.
func TestTryPrograms(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	in, err := New().Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := tryPrograms(t.Context(), in.Version, in.Programs, in.Env); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ name, script, word string }{
		{"authentication", `exec MONGOD --auth "$@"`, "authentication is on"},
		{"unknown parameter", `exec MONGOD --setParameter noSuchParameter=1 "$@"`, "noSuchParameter"},
		{"no replica sets", `for a; do shift; case "$a" in --replSet | "$set") ;; *) set -- "$@" "$a" ;; esac; set=; [ "$a" != --replSet ] || set=rs0; done
exec MONGOD "$@"`, "replSet option"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			program(t, dir, "mongod", "db version v"+in.Version, strings.ReplaceAll(test.script, "MONGOD", in.Programs["mongod"]))
			refused(t, dir, in.Version, test.word)
		})
	}
}

func TestIsOlder(t *testing.T) {
	for _, test := range []struct {
		version string
		want    bool
	}{{"4.2.9", false}, {"4.0.28", true}, {"3.6", true}, {"4.10.0", false}, {"8.0.1", false}, {"x", false}} {
		if got := isOlder(test.version, oldest); got != test.want {
			t.Errorf("%s: %v, want %v", test.version, got, test.want)
		}
	}
}
