// Package placement assigns the nodes of a lab to machines: by user rules, by the site of a machine, and otherwise by
// CPU and memory, with the nodes of a site together if they fit.
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

var ErrPlace = errors.New("nodes cannot be placed")

const (
	// Spread is the rule for nodes that may run on any machine.
	Spread = "spread"
	// Others is the key of the rule for all other nodes.
	Others = "*"
)

// Machine is the resources of a machine.
type Machine struct {
	Name string
	// Site is the site that the machine represents, "" for none.
	Site string
	// Cores and Memory, in bytes, are available; 0 if unknown.
	Cores  float64
	Memory int64
	// Whole machines have at most one node, which has the whole machine.
	Whole bool
}

// FromInventory converts the machines of a machines file.
func FromInventory(list []inventory.Entry) []Machine {
	machines := make([]Machine, len(list))
	for i, m := range list {
		machines[i] = Machine{Name: m.Name, Site: m.Site, Cores: m.Cores, Memory: int64(m.Memory), Whole: m.Whole}
	}
	return machines
}

// Plan is a placement of nodes.
type Plan struct {
	// MachineOf is the name of the machine by node.
	MachineOf map[string]string `json:"at"`
	// Used lists the machines with nodes, in the order of the machines.
	Used []Used `json:"used"`
	// Guessed is true if nodes were spread over machines with unknown resources.
	Guessed bool `json:"guessed,omitempty"`
}

// Used is the demand of nodes on a machine.
type Used struct {
	Machine string   `json:"machine"`
	Nodes   []string `json:"nodes"`
	// Cores and Memory, in bytes, are sums of the nodes' limits; a node without a CPU limit counts as one core.
	Cores  float64 `json:"cores"`
	Memory int64   `json:"memory_bytes,omitempty"`
	// Whole is true if its only node has the whole machine.
	Whole bool `json:"whole,omitempty"`
}

// Whole lists the nodes that have a whole machine.
func (p Plan) Whole() (nodes []string) {
	for _, u := range p.Used {
		if u.Whole {
			nodes = append(nodes, u.Nodes...)
		}
	}
	return nodes
}

// PlaceNodes places a topology's nodes. Rules assign a node, the nodes of a site, or Others to a machine or Spread. The
// rule of a node precedes that of its site.
func PlaceNodes(t topology.Topology, machines []Machine, rules map[string]string) (Plan, error) {
	p := planner{topology: t, machines: machines, used: make([]Used, len(machines)), at: map[string]string{}}
	if err := p.checkRules(rules); err != nil {
		return Plan{}, err
	}
	sites := map[string][]topology.Node{} // nodes without a rule
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

// checkRules refuses rules with unknown names.
func (p *planner) checkRules(rules map[string]string) error {
	if len(p.machines) == 0 {
		return fmt.Errorf("%w: no machines", ErrPlace)
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
			return withSuggestion(fmt.Errorf("%w: no node or site %q in the topology", ErrPlace, key), key, known)
		}
		if !slices.Contains(names, rules[key]) {
			return withSuggestion(fmt.Errorf("%w: unknown machine %[3]q for %[2]s", ErrPlace, key, rules[key]), rules[key], names)
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

// ruledMachine is the machine that a rule or a site determines.
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

// spreadNodes puts the nodes of a site on the least loaded machine, all on one if they fit, else each on a machine
// where it fits.
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
			return advice.With(fmt.Errorf("%w: no machine has room for %s", ErrPlace, what), "%s", p.spreadAdvice())
		}
		p.assign(n, i)
	}
	return nil
}

// spreadAdvice is the advice if nodes do not fit.
func (p *planner) spreadAdvice() string {
	if slices.ContainsFunc(p.machines, func(m Machine) bool { return m.Whole }) {
		return "add machines, or reduce the nodes' memory; a machine with whole: true has one node, without limits"
	}
	return "add machines, or reduce the nodes' memory"
}

// leastLoaded is the machine with the lowest load after adding the nodes, -1 if they fit nowhere. A site that needs
// more cores than a machine has is split if there are several machines.
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

// buildPlan returns the plan; ErrPlace if a machine has too little memory.
func (p *planner) buildPlan() (Plan, error) {
	plan := Plan{MachineOf: p.at, Guessed: p.guessed}
	for i, u := range p.used {
		if len(u.Nodes) == 0 {
			continue
		}
		if m := p.machines[i]; m.Memory > 0 && u.Memory > m.Memory {
			return Plan{}, fmt.Errorf("%w: memory %s of %s is below the %s of its nodes (%s)", ErrPlace, unit.Bytes(m.Memory), m.Name,
				unit.Bytes(u.Memory), strings.Join(u.Nodes, ", "))
		}
		if u.Whole && len(u.Nodes) > 1 {
			err := fmt.Errorf("%w: whole machine %s has several nodes: %s", ErrPlace, u.Machine, strings.Join(u.Nodes, " and "))
			return Plan{}, advice.With(err, "place the other nodes elsewhere, or remove whole: true")
		}
		plan.Used = append(plan.Used, u)
	}
	return plan, nil
}

// hasLimits reports whether a node has less than its machine.
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
