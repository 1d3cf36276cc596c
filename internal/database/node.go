package database

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/machine/host"
)

// NodeNamed is the place among a database's nodes of the one that an option names. The error tells who they are.
func NodeNamed(nodes []host.Host, option, name string) (int, error) {
	if i := slices.IndexFunc(nodes, func(h host.Host) bool { return h.Name() == name }); i >= 0 {
		return i, nil
	}
	var names []string
	for _, h := range nodes {
		names = append(names, h.Name())
	}
	return -1, fmt.Errorf("%s: no data node is called %q; they are %s", option, name, strings.Join(names, ", "))
}
