// Package placement decides which machine each node of a lab is on: where users say so, where a machine
// stands for a site, and else by processors and memory, sites kept together where they fit.
package placement

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
	"skerry/internal/machine/inventory"
	"skerry/internal/topology"
)

// ErrPlace says that nodes cannot be placed.
var ErrPlace = errors.New("nodes cannot be placed")

const (
	// Spread is the place of nodes that may be anywhere.
	Spread = "spread"
	// Others is the key of nodes that nothing else is said of.
	Others = "*"
)

// Machine is what a machine has to give.
type Machine struct {
	Name string
	// Site is the one that it stands for, "" for none.
	Site string
	// Cores and Memory, in bytes, are what may be used; 0 where it is not known.
	Cores  float64
	Memory int64
	// Whole machines have one node at most, which is the machine.
	Whole bool
}

// FromInventory is what a machines file says of what its machines have.
func FromInventory(list []inventory.Machine) []Machine {
	machines := make([]Machine, len(list))
	for i, m := range list {
		machines[i] = Machine{Name: m.Name, Site: m.Site, Cores: m.Cores, Memory: int64(m.Memory), Whole: m.Whole}
	}
	return machines
}

// Plan is where nodes are.
type Plan struct {
	// At are the machines' names, by node.
	MachineOf map[string]string `json:"at"`
	// Used is what is asked of each machine that has nodes, in the order of the machines.
	Used []Used `json:"used"`
	// Guessed says that nodes were spread over machines of which not all is known.
	Guessed bool `json:"guessed,omitempty"`
}

// Used is what nodes ask of a machine.
type Used struct {
	Machine string   `json:"machine"`
	Nodes   []string `json:"nodes"`
	// Cores and Memory, in bytes, are sums of the nodes' limits; nodes without a limit on
	// processors count as one core.
	Cores  float64 `json:"cores"`
	Memory int64   `json:"memory_bytes,omitempty"`
	// Whole says that its one node is the machine.
	Whole bool `json:"whole,omitempty"`
}

// Whole are the nodes that are a machine each.
func (p Plan) Whole() (nodes []string) {
	for _, u := range p.Used {
		if u.Whole {
			nodes = append(nodes, u.Nodes...)
		}
	}
	return nodes
}

// PlaceNodes places a topology's nodes. Rules say where a node, the nodes of a site or all Others are:
// on a machine, or Spread. What is said of a node comes before what is said of its site.
func PlaceNodes(t topology.Topology, machines []Machine, rules map[string]string) (Plan, error) {
	p := planner{topology: t, machines: machines, used: make([]Used, len(machines)), at: map[string]string{}}
	if err := p.checkRules(rules); err != nil {
		return Plan{}, err
	}
	sites := map[string][]topology.Node{} // what is to be spread
	for _, n := range t.Nodes {
		if i, ok := p.ruledMachine(n, rules); ok {
			p.assign(n, i)
		} else {
			sites[n.Site] = append(sites[n.Site], n)
		}
	}
	order := slices.Sorted(maps.Keys(sites))
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(sumCores(sites[b]), sumCores(sites[a])) })
	for _, s := range order {
		if err := p.spreadNodes(sites[s]); err != nil {
			return Plan{}, err
		}
	}
	return p.buildPlan()
}

type planner struct {
	topology topology.Topology
	machines []Machine
	used     []Used
	at       map[string]string
	guessed  bool
}

// checkRules refuses rules about what is not there.
func (p *planner) checkRules(rules map[string]string) error {
	if len(p.machines) == 0 {
		return fmt.Errorf("%w: there are no machines", ErrPlace)
	}
	known := []string{Others}
	for _, n := range p.topology.Nodes {
		known = append(known, n.Name, n.Site)
	}
	names := []string{Spread}
	for _, m := range p.machines {
		names = append(names, m.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		if !slices.Contains(known, key) {
			return withSuggestion(fmt.Errorf("%w: the topology has no node and no site %q", ErrPlace, key), key, known)
		}
		if !slices.Contains(names, rules[key]) {
			return withSuggestion(fmt.Errorf("%w: %s is to be on %q, which is no machine", ErrPlace, key, rules[key]), rules[key], names)
		}
	}
	return nil
}

func withSuggestion(err error, word string, known []string) error {
	if n := suggest.Nearest(word, known); n != "" {
		return advice.With(err, "did you mean %s?", n)
	}
	return err
}

// ruledMachine is the machine that a node is to be on, where anything says so.
func (p *planner) ruledMachine(n topology.Node, rules map[string]string) (int, bool) {
	for _, key := range []string{n.Name, n.Site} {
		if name, ok := rules[key]; ok {
			return p.index(name)
		}
	}
	for i, m := range p.machines {
		if m.Site != "" && m.Site == n.Site {
			return i, true
		}
	}
	return p.index(rules[Others])
}

func (p *planner) index(name string) (int, bool) {
	i := slices.IndexFunc(p.machines, func(m Machine) bool { return m.Name == name })
	return i, i >= 0
}

// spreadNodes puts the nodes of a site on the machine that is then the least full, all on one where
// they fit there, else each where it fits.
func (p *planner) spreadNodes(nodes []topology.Node) error {
	if i := p.leastLoaded(nodes); i >= 0 {
		for _, n := range nodes {
			p.assign(n, i)
		}
		return nil
	}
	for _, n := range nodes {
		i := p.leastLoaded([]topology.Node{n})
		if i < 0 {
			what := n.Name
			if n.Memory > 0 {
				what = fmt.Sprintf("%s, with %s of memory,", n.Name, unit.Bytes(n.Memory))
			}
			return advice.With(fmt.Errorf("%w: %s fits on no machine any more", ErrPlace, what), "%s", p.spreadAdvice())
		}
		p.assign(n, i)
	}
	return nil
}

// spreadAdvice says what to do where nodes do not fit.
func (p *planner) spreadAdvice() string {
	if slices.ContainsFunc(p.machines, func(m Machine) bool { return m.Whole }) {
		return "give more machines, or the nodes less memory; a machine with whole: true has one node, without limits"
	}
	return "give more machines, or the nodes less memory"
}

// leastLoaded is the machine that is the least full with some more nodes, -1 where they fit nowhere. A
// site that has more cores than a machine is split where there are others.
func (p *planner) leastLoaded(nodes []topology.Node) int {
	best, least := -1, 0.0
	for i, m := range p.machines {
		if m.Whole && (len(nodes) > 1 || len(p.used[i].Nodes) > 0 || hasLimits(nodes[0])) {
			continue
		}
		p.guessed = p.guessed || m.Cores == 0 || m.Memory == 0
		if m.Memory > 0 && p.used[i].Memory+sumMemory(nodes) > m.Memory {
			continue
		}
		wants := p.used[i].Cores + sumCores(nodes)
		if len(nodes) > 1 && len(p.machines) > 1 && m.Cores > 0 && sumCores(nodes) > m.Cores {
			continue
		}
		if full := wants / cmp.Or(m.Cores, 1); best < 0 || full < least {
			best, least = i, full
		}
	}
	return best
}

func (p *planner) assign(n topology.Node, i int) {
	u := &p.used[i]
	u.Machine, u.Whole, u.Nodes = p.machines[i].Name, p.machines[i].Whole, append(u.Nodes, n.Name)
	u.Cores, u.Memory = u.Cores+sumCores([]topology.Node{n}), u.Memory+n.Memory
	p.at[n.Name] = u.Machine
}

// buildPlan is what was placed; ErrPlace where a machine was given more memory's worth than it has.
func (p *planner) buildPlan() (Plan, error) {
	plan := Plan{MachineOf: p.at, Guessed: p.guessed}
	for i, u := range p.used {
		if len(u.Nodes) == 0 {
			continue
		}
		if m := p.machines[i]; m.Memory > 0 && u.Memory > m.Memory {
			return Plan{}, fmt.Errorf("%w: %s of %s is to hold %s (%s)", ErrPlace, unit.Bytes(m.Memory), m.Name, unit.Bytes(u.Memory), strings.Join(u.Nodes, ", "))
		}
		if u.Whole && len(u.Nodes) > 1 {
			err := fmt.Errorf("%w: %s is to be %s at once", ErrPlace, u.Machine, strings.Join(u.Nodes, " and "))
			return Plan{}, advice.With(err, "a machine with whole: true has one node: place the others elsewhere, or leave whole out")
		}
		plan.Used = append(plan.Used, u)
	}
	return plan, nil
}

// hasLimits tells whether a node has less than its machine.
func hasLimits(n topology.Node) bool { return n.CPU > 0 || n.Memory > 0 || n.Flavor != nil }

func sumCores(nodes []topology.Node) (sum float64) {
	for _, n := range nodes {
		sum += cmp.Or(n.CPU, 1)
	}
	return sum
}

func sumMemory(nodes []topology.Node) (sum int64) {
	for _, n := range nodes {
		sum += n.Memory
	}
	return sum
}
