package server_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"skerry/systems/metadata/server"
)

// BenchmarkServed measures operations over HTTP by 64 clients, each with its own connection: durable mkdir, and ls
// of ten entries.
func BenchmarkServed(b *testing.B) {
	_, addr := begin(b, server.Options{})
	do := func(c *http.Client, body string) {
		if answer, status, err := postText(c, addr, body); err != nil || status != http.StatusOK {
			b.Errorf("%s: %d, %s, %v", body, status, answer, err)
		}
	}
	c := http.DefaultClient
	for i := range 10 {
		do(c, fmt.Sprintf("mkdir -p /listed/%d", i))
	}
	do(c, "mkdir /made")
	var made atomic.Int64
	for name, body := range map[string]func() string{
		"mkdir": func() string { return fmt.Sprintf("mkdir /made/%d", made.Add(1)) },
		"ls":    func() string { return "ls /listed" },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				c := &http.Client{Transport: &http.Transport{}}
				defer c.CloseIdleConnections()
				for pb.Next() {
					do(c, body())
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
