package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/cmd/internal/cli"
	"skerry/internal/database/redis"
	"skerry/test/testkit"
)

// The defaults of init make a valid experiment, and its flags another.
func TestInitWritesAnExperimentThatIsValid(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, out, errs := skerry(t, "init"); code != cli.ExitOK || !strings.Contains(out, "skerry run my-question.yaml") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	before, err := os.ReadFile("my-question.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := skerry(t, "init", "--database", "etcd"); code != cli.ExitUsage || !strings.Contains(errs, "already exists") {
		t.Errorf("an existing file: %d %s", code, errs)
	}
	if after, err := os.ReadFile("my-question.yaml"); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v\n%s", err, after)
	}
	all := []string{"init", filepath.Join("deep", "cut.yaml"), "--topology", "mesh:3", "--database", "etcd", "--scale", "0.2,1",
		"--repetitions", "2",
		"--event", "cut=n1~n2,at=2s,for=3s", "--event", "kill", "--audit", "--assert", "lost_writes == 0"}
	if err := os.Mkdir("deep", 0o755); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := skerry(t, all...); code != cli.ExitOK || !strings.Contains(out, "4 trials: scale 0.2, 1 x 2 repetitions") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := skerry(t, "validate", filepath.Join("deep", "cut.yaml"), "my-question.yaml"); code != cli.ExitOK {
		t.Errorf("%d %s%s", code, out, errs)
	}
	for want, args := range map[string][]string{`did you mean "redis"`: {"--database", "rediss"}, `did you mean "kill"`: {"--event", "kil"},
		"at \"Atlantis\"": {"--client", "Atlantis"}} {
		code, _, errs := skerry(t, append([]string{"init", "wrong.yaml"}, args...)...)
		if _, err := os.Stat("wrong.yaml"); code != cli.ExitUsage || !strings.Contains(errs, want) || err == nil {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}

// The flags of init needs make valid needs.
func TestInitWritesNeeds(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := skerry(t, "init", "needs", "ship.yaml", "--cloud", "mesh:3", "--must", "p99 < 1s", "--bad-day", "flap: any",
		"--consider", "nothing-like-it")
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
		t.Errorf("an existing file: %d %s", code, errs)
	}
}
