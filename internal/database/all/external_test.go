package all

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/test/testkit"
)

// protocolTimeout bounds how long a database may try to talk to a server of another protocol.
const protocolTimeout = 90 * time.Second

// A server of another protocol, or one that never answers, is an error that names the server, for every database.
func TestServersOfAnotherProtocol(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for name, server := range map[string]string{"http": web.Listener.Addr().String(), "silent": testkit.SilentServer(t)} {
		for _, a := range Registry() {
			if _, ok := a.New().(database.External); !ok {
				continue
			}
			t.Run(a.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				d, err := external.New(a.New(), external.ClusterSpec{Servers: []string{server}, Timeout: unit.Duration(time.Second)}, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), protocolTimeout)
				defer cancel()
				dir := t.TempDir()
				began := time.Now()
				c, err := d.Start(ctx, database.Env{Scratch: dir})
				t.Logf("%.1f s: %v", time.Since(began).Seconds(), err)
				if err == nil {
					t.Fatal(c.Stop(ctx), "the server accepts connections")
				}
				if ctx.Err() != nil || !strings.Contains(err.Error(), server) {
					t.Errorf("the error does not name the server %s: %v", server, err)
				}
			})
		}
	}
}

// Databases whose clients can use servers that Skerry did not start.
func TestExternalDatabases(t *testing.T) {
	var names []string
	for _, a := range Registry() {
		if _, ok := a.New().(database.External); ok {
			names = append(names, a.Name)
		}
	}
	want := []string{"redis", "valkey", "etcd", "postgres", "mongodb", "ferretdb", "galera", "mysql-group-replication", "mysql-ndb", "hbase", "cassandra", "hydra"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v as docs/howto/own-cluster.md lists them", names, want)
	}
}

// Databases without a default user refuse a password without a user before anything connects.
func TestPasswordWithoutUser(t *testing.T) {
	t.Setenv(passwordVariable, "correct horse")
	for _, a := range Registry() {
		if _, ok := a.New().(database.External); !ok {
			continue
		}
		access := database.Access{Password: database.PasswordSpec{Env: passwordVariable}}
		spec := external.ClusterSpec{Servers: []string{"127.0.0.1:1"}, Access: access}
		d, err := external.New(a.New(), spec, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		got := d.CheckAccess()["password"]
		needs := slices.Contains([]string{"etcd", "mongodb", "ferretdb", "cassandra"}, a.Name)
		if needs != (got != nil) || needs && !strings.Contains(got.Error(), "clients of "+a.Name+" log in with a user") {
			t.Errorf("%s: a password without a user: %v, want an error that names the database: %v", a.Name, got, needs)
		}
		spec.User = "skerry"
		if d, err = external.New(a.New(), spec, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if got := d.CheckAccess()["password"]; got != nil {
			t.Errorf("%s: a password with a user: %v", a.Name, got)
		}
	}
}
