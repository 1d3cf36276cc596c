package ycsb

import (
	"slices"
	"strings"

	"skerry/internal/base/suggest"
)

// minStem is the shortest word that suggestProperty completes.
const minStem = 4

// suggestProperty returns what an unknown property may have been meant to be: the nearest spelling, or
// the known names that begin with it, as operationcount does with operations. "" if there is none.
func suggestProperty(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return near
	}
	stem := strings.TrimSuffix(strings.ToLower(name), "s")
	if len(stem) < minStem {
		return ""
	}
	var begin []string
	for _, k := range known {
		if strings.HasPrefix(k, stem) {
			begin = append(begin, k)
		}
	}
	slices.Sort(begin)
	return strings.Join(begin, ", ")
}
