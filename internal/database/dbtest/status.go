package dbtest

import (
	"maps"
	"slices"
	"testing"

	"skerry/internal/database"
)

const unknownOption = "no_such_option"

func (s *suite) testOptions(t *testing.T) {
	if err := s.db.Check(s.Nodes, s.Options); err != nil {
		t.Fatalf("the options of this test: %v", err)
	}
	for _, bad := range append([]database.Options{{unknownOption: 1}}, s.BadOptions...) {
		if err := s.db.Check(s.Nodes, s.withOptions(bad)); err == nil {
			t.Errorf("options %v were accepted", bad)
		}
	}
	if n := s.can.MinNodes; n > 1 && s.Options == nil {
		if err := s.db.Check(n-1, nil); err == nil {
			t.Errorf("%d nodes were accepted, the least is %d", n-1, n)
		}
	}
	s.hosts = s.newHosts(t)
	env := s.newEnv(t)
	env.Options = s.withOptions(database.Options{unknownOption: 1})
	if c, err := s.db.Start(t.Context(), env); err == nil {
		t.Errorf("a cluster with an option that does not exist was started; ending it: %v", c.Stop(t.Context()))
	}
	s.checkNothingLeft(t)
}

func (s *suite) withOptions(more database.Options) database.Options {
	o := maps.Clone(s.Options)
	if o == nil {
		o = make(database.Options)
	}
	maps.Copy(o, more)
	return o
}

func (s *suite) testStatus(t *testing.T, cluster database.Cluster) {
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	if err := cluster.Ready(ctx); err != nil {
		t.Errorf("it has started and is not ready: %v", err)
	}
	if err := cluster.Err(); err != nil {
		t.Errorf("it has failed: %v", err)
	}
	if len(cluster.Properties()) == 0 {
		t.Error("no properties for clients")
	}
	s.expectMembers(t, cluster, s.hostNames(0, s.Nodes))
	logs := cluster.Logs()
	if len(logs) < s.Nodes {
		t.Errorf("%d logs of %d nodes: %v", len(logs), s.Nodes, logs)
	}
	for name, log := range logs {
		if _, err := log.On.Stat(ctx, log.Path); err != nil {
			t.Errorf("log %s: %v", name, err)
		}
	}
}

func (s *suite) hostNames(from, to int) []string {
	var names []string
	for _, h := range s.hosts[from:to] {
		names = append(names, h.Name())
	}
	return names
}

func (s *suite) expectMembers(t *testing.T, cluster database.Cluster, want []string) {
	t.Helper()
	members, err := cluster.Members(t.Context())
	if err != nil {
		t.Errorf("asking for the members: %v", err)
		return
	}
	var got []string
	for _, m := range members {
		got = append(got, m.Node)
		if m.State == "" {
			t.Errorf("%s has no state", m.Node)
		}
		if m.Share < 0 || m.Share > 1.0001 {
			t.Errorf("%s owns %v of the data", m.Node, m.Share)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}
