package testkit

import (
	"fmt"
	"slices"
)

// Condition answers scripts (testscript.Params.Condition) whether the machine has the
// feature of a name, one of this package's or of more, by the rule of Need: one that
// SKERRY_REQUIRE lists must be there.
func Condition(more ...Feature) func(name string) (bool, error) {
	known := append([]Feature{Root, TUN, FUSE, QEMU, Dig, Git}, more...)
	return func(name string) (bool, error) {
		i := slices.IndexFunc(known, func(f Feature) bool { return f.Name == name })
		if i < 0 {
			return false, fmt.Errorf("unknown feature %q", name)
		}
		why := known[i].Missing()
		if why != "" && slices.Contains(required(), name) {
			return false, fmt.Errorf("needs %s, which SKERRY_REQUIRE says is here: %s", name, why)
		}
		return why == "", nil
	}
}
