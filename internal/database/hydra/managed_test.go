package hydra_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/galera"
	"skerry/internal/database/hydra"
	"skerry/internal/database/postgres"
	"skerry/internal/install"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// Every cloud has its own server, which has the acknowledged writes, and outlives the member on its node.
func TestServersOfClouds(t *testing.T) {
	for backend, recipe := range map[string]install.Recipe{"postgres": postgres.Recipe, "mariadb": galera.Recipe} {
		t.Run(backend, func(t *testing.T) {
			testkit.Need(t, testkit.Installed(recipe))
			ctx, d, nodes := t.Context(), hydra.New(), testhost.Loopback(t, 3)
			c := dbtest.Start(t, d, database.Env{Nodes: nodes, Options: database.Options{"backend": backend, "clouds": "node"}})
			client := dbtest.Open(t, d, c.Properties())
			for _, key := range []string{"user1", "user2"} {
				if err := client.Insert(ctx, "", key, []load.Field{{Name: "field0", Value: []byte("a")}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Halt(ctx, nodes[0], database.Abrupt); err != nil {
				t.Fatal(err)
			}
			if err := c.Revive(ctx, nodes[0]); err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				own, err := c.(database.Replicated).OpenMember(ctx, n.Name())
				if err != nil {
					t.Fatal(err)
				}
				holds := func() bool { // committed entries are applied a little later
					got, err := own.Read(ctx, "", "user2", nil, nil)
					return err == nil && len(got) == 1 && string(got[0].Value) == "a"
				}
				for deadline := time.Now().Add(time.Minute); !holds(); {
					if time.Now().After(deadline) {
						t.Fatalf("%s lacks acknowledged writes", n.Name())
					}
				}
				if err := own.Close(); err != nil {
					t.Error(err)
				}
			}
			var logs []string
			for name := range c.Logs() {
				logs = append(logs, name)
			}
			if all := strings.Join(logs, " "); len(logs) < 6 {
				t.Errorf("the logs are %s, want those of three members and three servers", all)
			}
			killServer(t, nodes[1].Dir())
			select {
			case <-c.Failed():
			case <-time.After(time.Minute):
				t.Fatal("the end of a cloud's server was not reported")
			}
			if err := c.Err(); !errors.Is(err, daemon.ErrEnded) || !strings.Contains(err.Error(), "the database of cloud n2") {
				t.Errorf("error %v does not name the cloud", err)
			}
		})
	}
}

// killServer kills the process with its data below a node's directory, according to the arguments of postgres and
// mariadbd.
func killServer(t *testing.T, dir string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		text, err := os.ReadFile(path)
		name := filepath.Base(strings.Split(string(text), "\x00")[0])
		if err != nil || !strings.Contains(string(text), dir+"/") || name != "postgres" && name != "mariadbd" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = unix.Kill(pid, unix.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no server has its data below %s", dir)
}
