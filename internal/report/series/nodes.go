package series

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"skerry/internal/record"
)

// Nodes is the resource usage of nodes, as means over a bin.
type Nodes struct {
	BinS   int       `json:"bin_s"`
	T      Moments   `json:"t"`
	Names  []string  `json:"names"`
	Series []NodeUse `json:"series"` // as Names
	Hidden int       `json:"hidden,omitempty"`
}

// NodeUse is one node's usage in cores, bytes and bytes per second.
type NodeUse struct {
	CPU    Values `json:"cpu"`
	Memory Values `json:"memory"`
	Read   Values `json:"read"`
	Wrote  Values `json:"wrote"`
	Rx     Values `json:"rx"`
	Tx     Values `json:"tx"`
}

const seriesOfNode = 6

// NewNodes thins node usage to at most points points per series and about values values in total.
// It keeps the shown nodes with the highest CPU usage and counts the others in Hidden.
func NewNodes(rows []record.NodeSecond, shown, points, values int) *Nodes {
	byNode := map[string][]record.NodeSecond{}
	times := map[int64]bool{}
	for _, r := range rows {
		byNode[r.Node] = append(byNode[r.Node], r)
		times[r.T] = true
	}
	if len(rows) == 0 {
		return nil
	}
	names := slices.Collect(maps.Keys(byNode))
	use := func(name string) (sum float64) {
		for _, r := range byNode[name] {
			sum += r.CPU
		}
		return sum
	}
	own := func(name string) int { // host entries are kept first
		if IsHostEntry(name) {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(use(b), use(a)), cmp.Compare(a, b))
	})
	n := &Nodes{Hidden: max(0, len(names)-shown)}
	n.Names = names[:len(names)-n.Hidden]
	slices.SortFunc(n.Names, func(a, b string) int { return cmp.Or(cmp.Compare(own(b), own(a)), cmp.Compare(a, b)) })
	all := slices.Sorted(maps.Keys(times))
	n.BinS = binSize(len(all), min(points, max(30, values/(seriesOfNode*len(n.Names)))))
	place := map[int64]int{}
	eachBin(len(all), slices.IndexFunc(all, func(t int64) bool { return t >= 0 }), n.BinS, func(a, b int) {
		for _, t := range all[a:b] {
			place[t] = len(n.T)
		}
		n.T = append(n.T, float64(all[a]))
	})
	for _, name := range n.Names {
		n.Series = append(n.Series, newNodeUse(byNode[name], place, len(n.T)))
	}
	return n
}

// IsHostEntry reports whether a name denotes the host or a helper process, not a node.
func IsHostEntry(name string) bool { return strings.HasPrefix(name, "@") }

// newNodeUse returns the means of one node. Bins without samples are 0.
func newNodeUse(rows []record.NodeSecond, place map[int64]int, count int) NodeUse {
	made := func() Values { return make(Values, count) }
	u := NodeUse{made(), made(), made(), made(), made(), made()}
	seen := made()
	for _, r := range rows {
		i := place[r.T]
		seen[i]++
		u.CPU[i] += r.CPU
		u.Memory[i] += float64(r.Memory)
		u.Read[i] += float64(r.ReadBytes)
		u.Wrote[i] += float64(r.WroteBytes)
		u.Rx[i] += float64(r.RxBytes)
		u.Tx[i] += float64(r.TxBytes)
	}
	for _, s := range []Values{u.CPU, u.Memory, u.Read, u.Wrote, u.Rx, u.Tx} {
		for i := range s {
			s[i] /= max(1, seen[i])
		}
	}
	return u
}
