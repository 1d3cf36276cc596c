package experiment

import (
	"strings"
	"testing"
)

func TestDatabaseSeries(t *testing.T) {
	parse := func(database string) (Experiment, error) {
		return Parse("x.yaml", []byte("name: x\ntopology: mesh:3\nworkload: a\n"+database+"\n"), nil, false)
	}
	for text, want := range map[string]string{
		"database: redis":                         "redis",
		"database: redis@7.0":                     "redis@7.0",
		"database: {name: redis, version: '7.0'}": "redis@7.0",
		"database: {name: redis@7.0, count: 3}":   "redis@7.0",
	} {
		e, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.Plan()[0].Parameters["database"]; got != want || e.Database.Name != "redis" {
			t.Errorf("%s: name in results is %v, driver is %s; want %s and redis", text, got, e.Database.Name, want)
		}
	}
	for text, want := range map[string]string{
		"database: redis@": "no series after @",
		"database: {name: redis@7.0, version: '8.0'}": "has version 8.0, too",
		"matrix: {database: [redis@7.0, redis@]}":     "no series after @",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	e, err := parse("matrix: {database: [redis@7.0, redis@8.0]}")
	if err != nil || len(e.Plan()) != 2 || e.Plan()[0].Experiment.Database.Version == e.Plan()[1].Experiment.Database.Version {
		t.Errorf("a matrix of two series: %v, %d trials", err, len(e.Plan()))
	}
}
