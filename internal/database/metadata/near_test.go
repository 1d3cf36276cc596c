package metadata_test

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/metadata"
	"skerry/internal/load"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// commands is the number of commands that a server has answered, for all clients.
func commands(t *testing.T, addr string) (sum float64) {
	t.Helper()
	answer, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if name, figure, ok := strings.Cut(lines.Text(), "} "); ok && strings.HasPrefix(name, "skerry_metadata_commands_total{") {
			n, err := strconv.ParseFloat(figure, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// Workloads in the directories of one site of a distributed tree involve no server of another site.
func TestOwnAreaCrossesNoLink(t *testing.T) {
	c, _ := start(t, 3, database.Options{"servers": "node", "replicas": 1})
	addrs := strings.Split(c.Properties()[metadata.PropAddresses], ",")
	open := func(ctx context.Context) (load.Client, error) { return metadata.New().Open(ctx, c.Properties()) }
	records, _, err := ycsb.Parse(ycsb.Properties{"recordcount": "60", "operationcount": "0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range mdtest.Names() {
		w := workload(t, name, map[string]string{"files": "5"})
		w.Mix = mdtest.Mix{List: 1, Stat: 1, Create: 1, Mkdir: 1, Rename: 1, Remove: 1}
		home, before := commands(t, addrs[0]), []float64{commands(t, addrs[1]), commands(t, addrs[2])}
		for _, phase := range []load.Phase{load.PhaseLoad, load.PhaseRun} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			spec := load.Spec{Phase: phase, Workload: records, Tree: w, Threads: 4, Seed: 5, Operations: 120}
			if _, err := load.Run(ctx, spec, open, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := commands(t, addrs[0]) - home; n < 180 { // 60 files are loaded
			t.Errorf("%s: the site's own server answered %v commands", name, n)
		}
		for i, n := range before {
			if now := commands(t, addrs[1+i]); now != n {
				t.Errorf("%s: a server of another site answered %v commands", name, now-n)
			}
		}
	}
}
