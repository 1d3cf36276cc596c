package store

import "testing"

// everyDatabase runs a test on each kind of database that is here.
func everyDatabase(t *testing.T, test func(t *testing.T, url string)) {
	for _, d := range []database{sqliteDatabase()} {
		t.Run(d.name, func(t *testing.T) { test(t, d.url(t)) })
	}
}
