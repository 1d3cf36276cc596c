package metadata

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// node is a node with a name and a site only.
type node struct {
	host.Host
	name, site string
}

func (n node) Name() string { return n.name }
func (n node) Site() string { return n.site }

func TestLayout(t *testing.T) {
	nodes := []host.Host{node{name: "a1", site: "a"}, node{name: "a2", site: "a"}, node{name: "b1", site: "b"}, node{name: "c1", site: "c"}}
	for _, test := range []struct {
		options database.Options
		want    string // servers with their nodes; "!" for one process
		of      string // servers of the nodes' areas
	}{
		{nil, "a1:a1,a2,b1,c1", "a1 a1 a1 a1"},
		{database.Options{"replicas": 1, "root": "b1"}, "!b1:b1", "b1 b1 b1 b1"},
		{database.Options{"replicas": 2, "root": "c1"}, "c1:c1,a1", "c1 c1 c1 c1"},
		{database.Options{"servers": "site"}, "a1:a1,a2 !b1:b1 !c1:c1", "a1 a1 b1 c1"},
		{database.Options{"servers": "site", "replicas": 1, "root": "a2"}, "!a2:a2 !b1:b1 !c1:c1", "a2 a2 b1 c1"},
		{database.Options{"servers": "node"}, "!a1:a1 !a2:a2 !b1:b1 !c1:c1", "a1 a2 b1 c1"},
		{database.Options{"servers": "node", "replicas": 3}, "a1:a1,a2,b1 a2:a2,b1,c1 b1:b1,c1,a1 c1:c1,a1,a2", "a1 a2 b1 c1"},
	} {
		o, err := parseOptions(test.options)
		if err != nil {
			t.Fatal(err)
		}
		servers, err := o.planServers(nodes)
		if err != nil {
			t.Fatal(err)
		}
		var got, of []string
		for _, s := range servers {
			var names []string
			for _, h := range s.nodes {
				names = append(names, h.Name())
			}
			alone := "!"
			if s.group {
				alone = ""
			}
			got = append(got, fmt.Sprintf("%s%s:%s", alone, s.name, strings.Join(names, ",")))
		}
		for _, h := range nodes {
			of = append(of, serverFor(servers, h).name)
		}
		if d := cmp.Diff([]string{test.want, test.of}, []string{strings.Join(got, " "), strings.Join(of, " ")}); d != "" {
			t.Errorf("%v: %s", test.options, d)
		}
	}
	o, err := parseOptions(database.Options{"root": "z"})
	if _, bad := o.planServers(nodes); err != nil || !errors.Is(bad, ErrOption) {
		t.Errorf("an unknown node as root: %v, %v", err, bad)
	}
}
