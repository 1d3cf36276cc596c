package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"skerry/internal/kernel/rootless"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
)

// nested is this program in a user namespace, which runs a command as another user.
func nested(ctx context.Context) error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	l, err := Up(ctx, Config{
		Name: o.Name, StateDir: o.State, DataDir: o.Data, Topology: ring(3, time.Millisecond), Scale: 1, Exe: os.Args[0], Ephemeral: true,
	})
	if err != nil {
		return err
	}
	h := l.Hosts()[0]
	p, err := h.Start(ctx, host.Command{
		Name: "id", Path: "/bin/sh", Args: []string{"-c", "id -u; id -g; touch mine"}, UID: 1000, GID: 1000, Stdout: os.Stdout, Stderr: os.Stdout,
	})
	if err == nil {
		<-p.Done()
		err = p.Err()
	}
	return errors.Join(err, l.Down(ctx))
}

// A database that refuses root runs as another user in its own view, and can access its directory.
func TestDatabaseRunsAsOtherUserWithoutRoot(t *testing.T) {
	if err := rootless.Available(t.Context()); err != nil {
		testkit.Lacks(t, testkit.UserNamespaces, err)
	}
	dir := t.TempDir()
	o := order{Name: "nested-" + itoa(os.Getpid()), State: dir + "/state", Data: dir + "/data"}
	ask, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--net", "--mount", "--", os.Args[0], "agent", "nested")
	cmd.Env = append(os.Environ(), "SKERRY_ROOTLESS=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(ask), os.Stderr
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "1000\n1000" {
		t.Errorf("the command ran as %q, %v; want 1000", out, err)
	}
	noTraces(t, Config{Name: o.Name, StateDir: o.State})
}
