package host

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

type execRequest struct {
	Name, Netns, Hosts, Tag string
	Command                 Command
}

// execAsAsked is this program as the process that Exec replaces.
func execAsAsked() {
	var ask execRequest
	if err := json.Unmarshal([]byte(os.Getenv("SKERRY_TEST_EXEC")), &ask); err != nil {
		fmt.Println(err)
		os.Exit(99)
	}
	fmt.Println(NewNode(Spec{Name: ask.Name, Netns: ask.Netns, Hosts: ask.Hosts, Tag: ask.Tag}).Exec(ask.Command))
	os.Exit(98)
}

func TestExecReplacesTheProcess(t *testing.T) {
	n := newNode(t, nil)
	ask, err := json.Marshal(execRequest{
		Name: n.spec.Name, Netns: n.spec.Netns, Hosts: n.spec.Hosts, Tag: n.spec.Tag,
		Command: Command{Path: "sh", Args: []string{"-c", "hostname; echo $SKERRY_LAB $GIVEN; pwd; cat; exit 7"}, Env: []string{"PATH=/bin:/usr/bin", "GIVEN=yes"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Dir = append(os.Environ(), "SKERRY_TEST_EXEC="+string(ask)), dir
	cmd.Stdin = strings.NewReader("through")
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("exited with %v, want 7", err)
	}
	if want := fmt.Sprintf("Pune\n%s yes\n%s\nthrough", n.spec.Tag, dir); string(out) != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}
