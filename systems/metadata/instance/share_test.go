package instance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/statustext"
	"skerry/test/testkit"
)

// TestServerMoves restarts one of two servers at another address and changes the address file. The other server
// keeps running, finds the new address, and reports it to clients.
func TestServerMoves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "servers")
	first, before, after := testkit.Address(t), testkit.Address(t), testkit.Address(t)
	write := func(second string) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, "# of the tree\ng1=%s\ng2=%s\n", first, second), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(before)
	dir := filepath.Join(t.TempDir(), "g2")
	options := func(name, listen, dir string) instance.Options {
		return instance.Options{Listen: listen, Dir: dir, Share: &instance.Share{Name: name, Root: "g1", File: file}}
	}
	run(t, options("g1", first, filepath.Join(t.TempDir(), "g1")))
	_, stop := run(t, options("g2", before, dir))
	c := client.New(first)
	defer c.Close()
	for _, line := range []string{"mkdir /far", "delegate /far g2", "create /far/x"} {
		if r := one(t, c, line); r.Err != nil {
			t.Fatalf("%s: %v", line, r.Err)
		}
	}
	stop()
	write(after)
	run(t, options("g2", after, dir))
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		r := one(t, c, "ls /far")
		if r.Err == nil {
			if len(r.Entries) != 1 || r.Entries[0].Name != "x" {
				t.Errorf("contents of the server: %+v", r.Entries)
			}
			break
		}
		if !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatal(r.Err)
		}
	}
	if s, err := c.Status(t.Context()); err != nil || s.Servers["g2"] != after {
		t.Errorf("clients get the addresses %v, %v", s.Servers, err)
	}
}

// TestBalance makes a server move one of two hot directories to the other server and report it, while a client
// lists them.
func TestBalance(t *testing.T) {
	addrs := []string{testkit.Address(t), testkit.Address(t)}
	servers := []string{"g1=" + addrs[0], "g2=" + addrs[1]}
	policy := &rebalance.Policy{Interval: 20 * time.Millisecond, Floor: 1, Rounds: 1, Rest: 100 * time.Millisecond}
	for i := range servers {
		share := &instance.Share{Name: fmt.Sprintf("g%d", i+1), Root: "g1", Servers: servers}
		if i == 0 {
			share.Balance = policy
		}
		run(t, instance.Options{Listen: addrs[i], Dir: filepath.Join(t.TempDir(), "data"), Share: share})
	}
	c := client.New(addrs[0])
	defer c.Close()
	var work []metadata.Command
	for _, line := range []string{"mkdir -p /a/x", "mkdir -p /b/x", "write /a/x/f text", "write /b/x/f text"} {
		if r := one(t, c, line); r.Err != nil {
			t.Fatalf("%s: %v", line, r.Err)
		}
	}
	for i := range 200 {
		work = append(work, metadata.Command{Op: metadata.List, Path: []string{"/a/x", "/b/x"}[i%2], MaxDepth: -1})
	}
	deadline := time.Now().Add(patience)
	for moves := int64(0); moves == 0; {
		list(t, c, work)
		s, err := c.Status(t.Context())
		if err != nil || s.Balancer == nil || s.Load == nil {
			t.Fatalf("%v, status %+v", err, s)
		}
		if moves = s.Balancer.Moves; moves == 0 && time.Now().After(deadline) {
			t.Fatalf("no directory moved: %+v, %+v", s.Balancer, s.Load)
		}
	}
	list(t, c, work)
	s, err := c.Status(t.Context())
	if err != nil || s.Balancer.Moves == 0 || len(s.Subtrees) == 0 || len(s.Holds) != 0 {
		t.Errorf("%v, status %+v, %+v", err, s, s.Balancer)
	}
	w := client.NewStatusPoller(map[string]string{"g1": addrs[0], "g2": addrs[1], "g3": addrs[1]})
	defer w.Close()
	all := w.Statuses(t.Context())
	if len(all["g1"]) != 1 || len(all["g2"]) != 1 || len(all["g2"][0].Holds) == 0 || len(all["g3"]) != 0 {
		t.Errorf("the servers report %+v", all)
	}
	var printed bytes.Buffer
	if err := statustext.WriteStatus(&printed, s, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"operations/s in /", " refused; ", ", holds the root, this one, "} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &printed)
		}
	}
	if strings.Contains(printed.String(), "warning") {
		t.Errorf("unexpected warning in\n%s", &printed)
	}
	response, err := http.Get("http://" + addrs[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(text), "\nskerry_metadata_balancer_moves_total ") {
		t.Errorf("%v, metrics\n%s", err, text)
	}
}

// list lists directories with one entry each.
func list(t *testing.T, c *client.Client, work []metadata.Command) {
	t.Helper()
	for i, r := range c.Do(t.Context(), work) {
		if errors.Is(r.Err, metadata.ErrUnavailable) {
			continue // the machine is too busy
		}
		if r.Err != nil || len(r.Entries) != 1 {
			t.Fatalf("%s: %+v", work[i], r)
		}
	}
}

func TestInvalidPolicy(t *testing.T) {
	share := &instance.Share{Name: "a", Root: "a", Servers: []string{"a=127.0.0.1:1"}, Balance: &rebalance.Policy{Factor: 0.5}}
	o := instance.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(), Share: share, Log: slog.New(slog.DiscardHandler)}
	if err := instance.Run(t.Context(), o); !errors.Is(err, rebalance.ErrPolicy) {
		t.Error(err)
	}
}
