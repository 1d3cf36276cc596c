package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"skerry/internal/bench/agent"
	"skerry/internal/testkit/loophost"
)

// TestMain makes this test's program an agent too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(serve(os.Args[2]))
	}
	os.Exit(m.Run())
}

type answer struct {
	Said  []string `json:"said"`
	Error string   `json:"error,omitempty"`
}

func (a answer) Failure() string { return a.Error }

// serve answers with the lines that it reads, as it is told.
func serve(how string) int {
	lines := bufio.NewReader(os.Stdin)
	said := []string{os.Getenv("GREETING")}
	for n := 2; how == "all" || n > 0 && how == "two" || n > 1; n-- {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		said = append(said, strings.TrimSpace(line))
	}
	switch how {
	case "crash":
		fmt.Fprintln(os.Stderr, "out of cheese")
		return 7
	case "nonsense":
		fmt.Println("nonsense")
		return 0
	case "deaf":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "refuse":
		_ = json.NewEncoder(os.Stdout).Encode(answer{Error: "no such job"})
		return 0
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer{Said: said})
	return 0
}

func start(t *testing.T, how string) *agent.Agent[answer] {
	t.Helper()
	a, err := agent.Start[answer](t.Context(), loophost.New(t, 1)[0], os.Args[0], []string{"agent", how}, []string{"GREETING=hello"}, map[string]int{"job": 1})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnswers(t *testing.T) {
	for how, c := range map[string]struct {
		do   func(*agent.Agent[answer]) (answer, error)
		want string
	}{
		"one": {func(a *agent.Agent[answer]) (answer, error) { return a.Wait(t.Context()) }, `hello {"job":1}`},
		"two": {func(a *agent.Agent[answer]) (answer, error) {
			if err := a.Tell("check"); err != nil {
				return answer{}, err
			}
			return a.Wait(t.Context())
		}, `hello {"job":1} "check"`},
		"all": {func(a *agent.Agent[answer]) (answer, error) { return a.End(t.Context()) }, `hello {"job":1}`},
	} {
		got, err := c.do(start(t, how))
		if said := strings.Join(got.Said, " "); err != nil || said != c.want {
			t.Errorf("%s: %q, %v", how, said, err)
		}
	}
}

func TestFailures(t *testing.T) {
	for how, want := range map[string]string{"crash": "out of cheese", "nonsense": "invalid character", "refuse": "no such job"} {
		if got, err := start(t, how).Wait(t.Context()); !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", how, got, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := start(t, "deaf").Wait(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting no longer: %v", err)
	}
	a := start(t, "deaf")
	if err := errors.Join(a.Kill(), a.Kill()); err != nil {
		t.Error(err)
	}
	if err := a.Tell("check"); !errors.Is(err, agent.ErrAgent) {
		t.Errorf("telling one that has ended: %v", err)
	}
	if _, err := agent.Start[answer](t.Context(), loophost.New(t, 1)[0], "/nowhere/skerry", nil, nil, 1); err == nil {
		t.Error("a program that is not there was started")
	}
}
