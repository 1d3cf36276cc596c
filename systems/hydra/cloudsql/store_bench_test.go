package cloudsql

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"

	"skerry/systems/hydra/command"
)

// BenchmarkRebuild fills an empty SQLite database from a snapshot with SKERRY_ROWS rows (default 20,000).
func BenchmarkRebuild(b *testing.B) {
	rows, err := strconv.Atoi(os.Getenv("SKERRY_ROWS"))
	if err != nil {
		rows = 20_000
	}
	source := benchStore(b)
	if _, err := source.Apply(b.Context(), "x", 0, []Entry{entry(b, 1,
		command.Transaction{Writes: []command.Write{write(command.CreateTable, "t", "", "")}})}); err != nil {
		b.Fatal(err)
	}
	var batch []Entry
	applied := uint64(1)
	for i := range rows {
		batch = append(batch, entry(b, uint64(i)+2, command.Transaction{Writes: []command.Write{write(command.Put, "t",
			fmt.Sprintf("account%08d", i), `{"balance":100}`)}}))
		if len(batch) == 4096 || i == rows-1 {
			if _, err := source.Apply(b.Context(), "x", applied, batch); err != nil {
				b.Fatal(err)
			}
			applied, batch = batch[len(batch)-1].Index, batch[:0]
		}
	}
	var snapshot bytes.Buffer
	if _, err := source.Save(b.Context(), &snapshot); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := benchStore(b).Load(b.Context(), bytes.NewReader(snapshot.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Config{URL: "sqlite:" + b.TempDir() + "/hydra.db", Cluster: "test", Readers: 2})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}
