package webdata

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"skerry/internal/record"
)

const seriesOfNode = 6

// nodesOf bins what nodes used. Where there are more nodes than can be told apart, those that
// used the most CPU are shown and the others are left out.
func nodesOf(rows []record.NodeSecond, l limits) *Nodes {
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
		if strings.HasPrefix(name, "@") {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(use(b), use(a)), cmp.Compare(a, b))
	})
	n := &Nodes{Hidden: max(0, len(names)-l.nodes)}
	n.Names = names[:len(names)-n.Hidden]
	slices.SortFunc(n.Names, func(a, b string) int { return cmp.Or(cmp.Compare(own(b), own(a)), cmp.Compare(a, b)) })
	all := slices.Sorted(maps.Keys(times))
	n.BinS = binOf(len(all), max(30, l.nodeValues/(seriesOfNode*len(n.Names))))
	place := map[int64]int{}
	bins(len(all), slices.IndexFunc(all, func(t int64) bool { return t >= 0 }), n.BinS, func(a, b int) {
		for _, t := range all[a:b] {
			place[t] = len(n.T)
		}
		n.T = append(n.T, float64(all[a]))
	})
	for _, name := range n.Names {
		n.Series = append(n.Series, useOf(byNode[name], place, len(n.T)))
	}
	return n
}

// useOf is one node's means; a bin in which it was not sampled stays at 0.
func useOf(rows []record.NodeSecond, place map[int64]int, count int) NodeUse {
	made := func() series { return make(series, count) }
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
	for _, s := range []series{u.CPU, u.Memory, u.Read, u.Wrote, u.Rx, u.Tx} {
		for i := range s {
			s[i] /= max(1, seen[i])
		}
	}
	return u
}
