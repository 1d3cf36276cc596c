package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings adds a note on every pair whose nodes had other settings of TCP: the congestion control alone can explain a
// difference.
func (r *Report) settings() {
	for _, p := range r.Pairs {
		if note := p.settings(); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
}

func (p Pair) settings() string {
	a, b := p.A.settings(), p.B.settings()
	switch {
	case len(a) == 0 && len(b) == 0:
		return ""
	case len(a) == 0:
		return unrecorded(p.A, p.B)
	case len(b) == 0:
		return unrecorded(p.B, p.A)
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if x, y := values(a[name]), values(b[name]); x != y {
			differ = append(differ, fmt.Sprintf("%s is %s in A and %s in B", name, x, y))
		}
	}
	if differ == nil {
		return ""
	}
	return fmt.Sprintf("kernel settings of nodes differ: %s (A is %s; B is %s)", strings.Join(differ, "; "), p.A, p.B)
}

// unrecorded is the note on a run of an older version beside one of this version.
func unrecorded(missing, there Side) string {
	return fmt.Sprintf("the kernel settings of nodes (TCP's congestion control and buffers) were recorded for %s and not for %s: they may differ", there, missing)
}

// settings returns the values that nodes had of each setting that concerns TCP, over the side's trials.
func (s Side) settings() map[string]map[string]bool {
	of := map[string]map[string]bool{}
	for _, t := range s.trials {
		if t.Machine == nil {
			continue
		}
		for name, value := range t.Machine.Settings {
			if !strings.HasPrefix(name, "net.ipv4.tcp_") && !strings.HasPrefix(name, "net.core.") {
				continue // those that follow from the topology: who passes packets on, who has IPv6
			}
			if of[name] == nil {
				of[name] = map[string]bool{}
			}
			of[name][value] = true
		}
	}
	return of
}

// values joins the values of a setting, "not recorded" without any.
func values(of map[string]bool) string {
	if len(of) == 0 {
		return "not recorded"
	}
	return strings.Join(slices.Sorted(maps.Keys(of)), " or ")
}
