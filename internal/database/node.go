package database

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/machine/host"
)

// OrderFirst are a database's nodes with the one that an option names before all others; as they are where it names none. The
// error tells who they are.
func OrderFirst(nodes []host.Host, option, name string) ([]host.Host, error) {
	if name == "" {
		return nodes, nil
	}
	if i := slices.IndexFunc(nodes, func(h host.Host) bool { return h.Name() == name }); i >= 0 {
		return slices.Concat(nodes[i:i+1], nodes[:i], nodes[i+1:]), nil
	}
	var names []string
	for _, h := range nodes {
		names = append(names, h.Name())
	}
	return nil, fmt.Errorf("%s: no data node is called %q; they are %s", option, name, strings.Join(names, ", "))
}
