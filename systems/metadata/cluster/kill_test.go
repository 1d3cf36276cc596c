package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
)

// serveVariable has the test's program be a server: NAME DIR SERVER...
const serveVariable = "SKERRY_METADATA_TEST_SERVER"

func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(serveVariable))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	share := &instance.Share{Name: words[0], Root: "g1", Servers: words[2:]}
	o := instance.Options{Dir: words[1], Share: share, Log: slog.New(slog.DiscardHandler)}
	for _, s := range share.Servers {
		if name, addr, _ := strings.Cut(s, "="); name == share.Name {
			o.Listen = addr
		}
	}
	if err := instance.Run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a server that is killed with kill -9.
type process struct {
	t    *testing.T
	text string
	cmd  *exec.Cmd
}

func (p *process) start() {
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveVariable+"="+p.text)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Error(err)
	}
}

func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
}

// TestKill moves files and a directory between two servers that are killed and started: none
// is lost, and none is there twice. SKERRY_METADATA_KILLS is how often; 3.
func TestKill(t *testing.T) {
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("SKERRY_METADATA_KILLS")); err == nil {
		kills = n
	}
	addrs, all := processes(t, 2)
	c := client.New(addrs[0])
	defer c.Close()
	for _, line := range []string{"mkdir -p /a", "mkdir -p /b", "stat /b", "delegate /b g2", "mkdir -p /a/d/x", "write /a/0 0", "write /a/1 1", "write /a/2 2"} {
		insist(t, c, line)
	}
	ctx, end := context.WithCancel(t.Context())
	var movers sync.WaitGroup
	for i, name := range []string{"0", "1", "2", "d"} {
		own := client.New(addrs[i%2])
		movers.Go(func() {
			defer own.Close()
			for n := 0; ctx.Err() == nil; n++ {
				from, to := "/a/"+name, "/b/"+name
				if n%2 == 1 {
					from, to = to, from
				}
				// One that was sent is waited for: it must not be done between the two listings.
				own.DoOne(t.Context(), metadata.Command{Op: metadata.Move, Path: from, To: to, MaxDepth: -1})
			}
		})
	}
	for n := range kills {
		time.Sleep(rand.N(400 * time.Millisecond)) // kills come at any moment
		all[n%2].kill()
		all[n%2].start()
		insist(t, c, "stat /a")
	}
	end()
	movers.Wait()
	var names []string
	for _, dir := range []string{"/a", "/b"} {
		for _, e := range insist(t, c, "ls "+dir).Entries {
			names = append(names, e.Name)
			if e.Name == "d" {
				insist(t, c, "stat "+dir+"/d/x")
			} else if r := insist(t, c, "read "+dir+"/"+e.Name); string(r.Data) != e.Name {
				t.Errorf("%s/%s has %q", dir, e.Name, r.Data)
			}
		}
	}
	if slices.Sort(names); strings.Join(names, " ") != "0 1 2 d" {
		t.Errorf("there are %v", names)
	}
}

// insist asks until a server is there to answer.
func insist(t *testing.T, c *client.Client, line string) metadata.Result {
	t.Helper()
	r, err := insisted(t.Context(), c, line)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// insisted is insist for goroutines beside the test's own.
func insisted(ctx context.Context, c *client.Client, line string) (metadata.Result, error) {
	command, err := metadata.Parse(line)
	if err != nil {
		return metadata.Result{}, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := c.DoOne(ctx, command)
		switch {
		case r.Err == nil || errors.Is(r.Err, metadata.ErrExists):
			return r, nil
		case !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline):
			return r, fmt.Errorf("%s: %w", line, r.Err)
		}
	}
}
