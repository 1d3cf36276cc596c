package testkit

import (
	"fmt"
	"slices"
)

// Condition answers scripts (testscript.Params.Condition) whether the machine has the
// feature of that name, by the rule of Need: one that SKERRY_REQUIRE lists must be there.
func Condition(name string) (bool, error) {
	for _, f := range []Feature{Root, TUN, FUSE, Redis, Valkey, Etcd, Postgres, MongoDB, FerretDB, Galera, MySQL, NDB, HBase, Babel, Tinc, QEMU, Dig, Git} {
		if f.Name != name {
			continue
		}
		why := f.Missing()
		if why != "" && slices.Contains(required(), name) {
			return false, fmt.Errorf("needs %s, which SKERRY_REQUIRE says is here: %s", name, why)
		}
		return why == "", nil
	}
	return false, fmt.Errorf("unknown feature %q", name)
}
