package series

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"skerry/internal/record"
)

// Nodes is what nodes used, means over a bin; a series a node.
type Nodes struct {
	BinS   int       `json:"bin_s"`
	T      Moments   `json:"t"`
	Names  []string  `json:"names"`
	Series []NodeUse `json:"series"` // as Names
	Hidden int       `json:"hidden,omitempty"`
}

// NodeUse is one node's series: cores, bytes, and bytes a second.
type NodeUse struct {
	CPU    Values `json:"cpu"`
	Memory Values `json:"memory"`
	Read   Values `json:"read"`
	Wrote  Values `json:"wrote"`
	Rx     Values `json:"rx"`
	Tx     Values `json:"tx"`
}

const seriesOfNode = 6

// NewNodes bins what nodes used into at most so many points of a series, and so many values of all
// series together. Of more nodes than are to be shown those that used the most CPU are, and the
// others are left out.
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
	own := func(name string) int { // the machine's own first to stay
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

// IsHostEntry tells whether a name is of no node but of the machine itself, or of what emulates links.
func IsHostEntry(name string) bool { return strings.HasPrefix(name, "@") }

// newNodeUse is one node's means; a bin in which it was not sampled stays at 0.
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
