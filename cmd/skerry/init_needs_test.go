package main

import (
	"os"
	"strings"
	"testing"

	"skerry/cmd/internal/cli"
	"skerry/internal/database/redis"
	"skerry/internal/testkit"
)

// Without a terminal init needs asks nothing. What it writes is what choose takes.
func TestInitWritesNeeds(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := skerry(t, "init", "needs", "ship.yaml", "--cloud", "mesh:3", "--must", "p99 < 1s", "--bad-day", "flap: any", "--consider", "nothing-like-it")
	if _, err := os.Stat("ship.yaml"); code != cli.ExitUsage || !strings.Contains(errs, "unknown database") || err == nil {
		t.Errorf("%d %s%s", code, out, errs)
	}
	testkit.Need(t, testkit.Installed(redis.Recipe))
	code, out, errs = skerry(t, "init", "needs", "--consider", "redis", "--cloud", "mesh:3", "--bad-day", "site_lost: n2", "--budget", "3h")
	if code != cli.ExitOK || !strings.Contains(out, "skerry choose needs.yaml") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if code, out, errs := skerry(t, "choose", "needs.yaml", "--plan"); code != cli.ExitOK || !strings.Contains(out, "gives up") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, _, errs := skerry(t, "init", "needs"); code != cli.ExitUsage || !strings.Contains(errs, "already exists") {
		t.Errorf("a file that is there: %d %s", code, errs)
	}
}
