package hydra_test

import (
	"strings"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
	"skerry/internal/database/galera"
	"skerry/internal/database/hydra"
	"skerry/internal/database/postgres"
	"skerry/internal/install"
	"skerry/internal/load"
	"skerry/internal/testkit"
	"skerry/internal/testkit/loophost"
)

// Every cloud has a server of its own, which has what was acknowledged, and outlives the member on its node.
func TestServersOfClouds(t *testing.T) {
	for backend, recipe := range map[string]install.Recipe{"postgres": postgres.Recipe, "mariadb": galera.Recipe} {
		t.Run(backend, func(t *testing.T) {
			testkit.Need(t, testkit.Installed(recipe))
			ctx, d, nodes := t.Context(), hydra.New(), loophost.New(t, 3)
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
				holds := func() bool { // what is committed is applied a little later
					got, err := own.Read(ctx, "", "user2", nil, nil)
					return err == nil && len(got) == 1 && string(got[0].Value) == "a"
				}
				for deadline := time.Now().Add(time.Minute); !holds(); {
					if time.Now().After(deadline) {
						t.Fatalf("%s does not hold what was acknowledged", n.Name())
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
				t.Errorf("the logs are %s: of three members and three servers", all)
			}
		})
	}
}
