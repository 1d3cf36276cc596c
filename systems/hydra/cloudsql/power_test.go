package cloudsql

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/hydra/command"
)

// TestPowerFailure takes from a SQLite database all that was not synced when Sync said up to
// where it is safe: what it said is there, with a torn rest behind it, and the log's entries
// after it come to the same again.
func TestPowerFailure(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "hydra.db")
	s := open(t, "sqlite:"+path)
	log := []Entry{entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "a", "", "")}})}
	for i := uint64(2); i <= 400; i++ {
		log = append(log, entry(t, i, command.Transaction{Writes: []command.Write{write(command.Add, "a", fmt.Sprint("k", i%20), `{"n":1}`)}}))
	}
	apply := func(s *Store, from, to int) {
		t.Helper()
		for i := from; i < to; i += 10 {
			if _, err := s.Apply(ctx, "x", uint64(i), log[i:min(i+10, to)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, synced := range []int{10, 150, 300} {
		t.Run(fmt.Sprint(synced), func(t *testing.T) {
			p, err := s.Progress(ctx)
			if err != nil {
				t.Fatal(err)
			}
			apply(s, int(p.Applied), synced)
			safe, err := s.Sync(ctx)
			if err != nil || safe != uint64(synced) {
				t.Fatalf("safe up to %d, %v", safe, err)
			}
			database, wal := read(path), read(path+"-wal")
			apply(s, synced, synced+50)
			torn := read(path + "-wal")[len(wal):]
			left := filepath.Join(t.TempDir(), "hydra.db")
			for name, b := range map[string][]byte{left: database, left + "-wal": append(wal, torn[:len(torn)/3]...)} {
				if err := os.WriteFile(name, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			after := open(t, "sqlite:"+left)
			at, err := after.Progress(ctx)
			if err != nil || at.Applied < safe || at.Applied >= uint64(synced+50) {
				t.Fatalf("%d is left of what was safe up to %d, %v", at.Applied, safe, err)
			}
			apply(after, int(at.Applied), synced+50)
			if d := cmp.Diff(contents(t, s), contents(t, after)); d != "" {
				t.Error(d)
			}
		})
	}
}
