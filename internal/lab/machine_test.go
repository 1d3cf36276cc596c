package lab

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"skerry/test/testkit/testhost"
)

// noTraces fails the test if anything remains of its labs.
func noTraces(t *testing.T, c Config) {
	t.Helper()
	testhost.CheckLeftovers(t, c.Name, filepath.Dir(c.StateDir))
}

// ownNetwork describes the network namespace of the machine.
func ownNetwork(t *testing.T) []string {
	t.Helper()
	var all []string
	links, errLinks := netlink.LinkList()
	addrs, errAddrs := netlink.AddrList(nil, netlink.FAMILY_ALL)
	routes, errRoutes := netlink.RouteList(nil, netlink.FAMILY_ALL)
	rules, errRules := netlink.RuleList(netlink.FAMILY_ALL)
	for _, err := range []error{errLinks, errAddrs, errRoutes, errRules} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range links {
		all = append(all, "device "+l.Attrs().Name)
	}
	for _, a := range addrs {
		all = append(all, "address "+a.String())
	}
	for _, r := range routes {
		all = append(all, "route "+r.String())
	}
	for _, r := range rules {
		all = append(all, "rule "+r.String())
	}
	slices.Sort(all)
	return all
}

func sameNetwork(t *testing.T, before []string, when string) {
	t.Helper()
	if diff := cmp.Diff(before, ownNetwork(t)); diff != "" {
		t.Errorf("%s the machine's own network differs:\n%s", when, diff)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
