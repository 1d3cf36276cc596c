package wal_test

import (
	"errors"
	"os"
	"testing"

	"skerry/systems/consensus/wal"
)

// FuzzReplay opens segments with arbitrary contents: each one is rejected or opens as a log that accepts
// entries and reopens unchanged.
func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	fs, err := wal.Directory(dir)
	if err != nil {
		f.Fatal(err)
	}
	l, err := wal.Open(fs, options)
	if err != nil {
		f.Fatal(err)
	}
	for i := uint64(1); i < 10; i++ {
		if err := errors.Join(l.Append(hard(1, 1, i-1), entries(i, i, 1)), l.Sync()); err != nil {
			f.Fatal(err)
		}
	}
	size := l.Usage().Bytes
	l.Close()
	b, err := os.ReadFile(dir + "/0000000000000001.wal")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:size])
	f.Add(b[:size-5])
	f.Add(b[:100])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(dir+"/0000000000000001.wal", b, 0o600))
		l, err := wal.Open(directory(t, dir), options)
		if err != nil {
			return
		}
		last, _ := l.LastIndex()
		must(t, l.Append(nil, entries(last+1, last+3, 9)))
		must(t, l.Sync())
		before, err := l.Entries(last+1, last+4, 1<<20)
		must(t, err)
		must(t, l.Close())
		l, err = wal.Open(directory(t, dir), options)
		must(t, err)
		defer l.Close()
		if got, _ := l.LastIndex(); got != last+3 || len(before) != 3 {
			t.Errorf("the reopened log ends at %d, want %d", got, last+3)
		}
	})
}
