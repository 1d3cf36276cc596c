package hydra

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// BenchmarkLocalRead reads rows of a table of 10,000 rows in three ways: directly from the database, through the
// HTTP handler, and over loopback with the client in the same process.
func BenchmarkLocalRead(b *testing.B) {
	const rows = 10_000
	s, err := cloudsql.Open(b.Context(), cloudsql.Config{URL: "sqlite:" + filepath.Join(b.TempDir(), "hydra.db"), Cluster: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	create := command.Transaction{Writes: []command.Write{{Do: command.CreateTable, Table: "bench"}}}
	entries := []cloudsql.Entry{{Index: 1, Data: create.Append(nil)}}
	key := func(i int) string { return fmt.Sprintf("k%09d", i) }
	for i := range rows {
		put := command.Transaction{Writes: []command.Write{{Do: command.Put, Table: "bench", Key: key(i),
			Value: []byte(`{"v":"xxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`)}}}
		entries = append(entries, cloudsql.Entry{Index: uint64(i + 2), Data: put.Append(nil)})
	}
	for i := 0; i < len(entries); i += 1000 {
		if _, err := s.Apply(b.Context(), "bench", uint64(i), entries[i:min(i+1000, len(entries))]); err != nil {
			b.Fatal(err)
		}
	}
	n := NewNode(Options{Cluster: "bench", Name: "a", Cloud: "east"}, s)
	n.log = newSharedLog().member(consensus.Member{ID: 1, Name: "a", Site: "east"})
	server := api.New(api.Config{Backend: n, Member: "a"})

	b.Run("database", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := s.Get(b.Context(), "bench", key(rand.IntN(rows)), 0); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("interface", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/tables/bench/rows/"+key(rand.IntN(rows))+"?read=local", nil)
				if err != nil {
					b.Error(err)
				}
				w := &discard{header: http.Header{}}
				if server.ServeHTTP(w, r); w.status != 0 {
					b.Errorf("status %d", w.status)
				}
			}
		})
	})
	b.Run("loopback", func(b *testing.B) {
		h := server.HTTP(nil)
		l := listenLoopback(b)
		served := make(chan error, 1)
		go func() { served <- h.Serve(l) }()
		b.Cleanup(func() { h.Close(); <-served })
		c, err := hydraclient.New(hydraclient.Config{Endpoints: []string{l.Addr().String()}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		b.SetParallelism(32)
		b.ResetTimer()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := c.Get(b.Context(), "bench", key(rand.IntN(rows)), hydraclient.Read(api.Local)); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// discard is a ResponseWriter that discards the response.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }

func listenLoopback(b *testing.B) net.Listener {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return l
}
