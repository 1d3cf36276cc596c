package experiment

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/event"
	"skerry/internal/lab"
	"skerry/internal/lab/placement"
	"skerry/internal/machine"
	"skerry/internal/machine/inventory"
)

// ReadMachines are the machines that labs stand on, as their file has them.
func (e Experiment) ReadMachines() (inventory.File, error) {
	return e.Machines.Read(e.resolvePath("experiment"))
}

// Placement are where the nodes of the lab stand on machines of which no more is known than their file
// tells; nil where the experiment is about this machine, or a cluster has to be asked for machines.
func (e Experiment) Placement() (*placement.Plan, error) {
	if !e.Machines.Any() {
		return nil, nil
	}
	f, err := e.ReadMachines()
	if err != nil || slices.ContainsFunc(f.Machines, func(m inventory.Machine) bool { return m.Kubernetes != nil }) {
		return nil, err
	}
	cloud, err := e.Cloud()
	if err != nil {
		return nil, err
	}
	plan, err := placement.PlaceNodes(cloud, placement.FromInventory(f.Machines), e.Place)
	return &plan, err
}

// checkMachines checks that labs can stand on the machines that are given.
func (c *checker) checkMachines() {
	e := c.e
	if !e.Machines.Any() {
		if e.Links == realLinks {
			c.fail("links", "give machines: FILE, or --machines FILE (docs/machines.md)", "links between machines are to be left as they are, and the lab stands on this machine alone")
		}
		return
	}
	if ps := e.Machines.Check("machines"); len(ps) > 0 {
		c.problems = append(c.problems, ps.Locate(e.origin.root, "")...)
		return
	}
	var ps strict.Problems
	file, err := e.ReadMachines()
	if errors.As(err, &ps) {
		c.problems = append(c.problems, ps...)
		return
	}
	if err != nil {
		c.fail("machines", "give a machines file, see machines.md", "%v", err)
		return
	}
	for _, m := range file.Machines {
		if addr, err := netip.ParseAddr(m.Address()); err == nil && e.Between == "plain" && !machine.Private(addr) {
			c.fail("between", "leave it out, and packets are encrypted", "%s is reached by %s, which is not a private address: packets cannot be plain", m.Name, addr)
		}
	}
	if err := lab.CheckMultiMachine(e.origin.cloud, e.Engine); err != nil {
		c.fail("machines", advice.Of(err), "%v", err)
	}
	plan, err := e.Placement()
	if err != nil {
		c.fail("place", advice.Of(err), "%v", err)
		return
	}
	if e.Links == realLinks {
		c.checkRealLinks(plan)
	}
	if plan == nil {
		return
	}
	whole := plan.Whole()
	if err := lab.CheckWholeMachines(e.origin.cloud, whole); err != nil {
		c.fail("machines", advice.Of(err), "%v", err)
	}
	for node := range event.DiskSizes(e.Events, e.EventLayout(nil)) {
		if slices.Contains(whole, node) {
			c.fail("events", "use disk_slow, or leave out whole: true", "disk_full cannot happen to %s, whose disk is a whole machine's own", node)
		}
	}
}

// describePlacement writes where the nodes of an experiment's lab stand, as far as that can be told before the
// machines are reached.
func (e Experiment) describePlacement(w io.Writer) {
	e.describeRealLinks(w)
	plan, err := e.Placement()
	if plan == nil || err != nil { // it was checked
		return
	}
	for _, u := range plan.Used {
		asks := fmt.Sprintf("%.4g cores", u.Cores)
		if u.Memory > 0 {
			asks += ", " + unit.Bytes(u.Memory).String()
		}
		if u.Whole {
			asks = "the whole machine"
		}
		fmt.Fprintf(w, "  on %s: %s (%s)\n", u.Machine, strings.Join(u.Nodes, ", "), asks)
	}
	if plan.Guessed {
		fmt.Fprintf(w, "  machines whose file tells no cores or memory are asked when the run begins: nodes that are spread may stand elsewhere then\n")
	}
}

// realLinks is what Links is where links between machines are left as they are.
const realLinks = "real"

// checkRealLinks checks what is asked of links that are left as they are, and notes which those are. Plan is nil
// where it is not known what stands where.
func (c *checker) checkRealLinks(plan *placement.Plan) {
	e := c.e
	if plan != nil && !plan.Guessed && len(plan.Used) == 1 {
		c.fail("links", "give machines for other sites (site in the machines file, or place), or leave links out", "links between machines are to be left as they are, and all nodes stand on %s", plan.Used[0].Machine)
	}
	if e.Scale != 1 {
		c.fail("scale", "leave scale out, or links: real", "links between machines are left as they are, and no scale changes them")
	}
	if e.Drift != nil {
		c.fail("drift", "leave drift out, or links: real", "links between machines are left as they are, and do not follow a drift")
	}
	e.origin.real = map[string]bool{}
	for _, l := range e.origin.cloud.Links {
		if plan == nil || plan.Guessed || plan.MachineOf[l.A] != plan.MachineOf[l.B] {
			e.origin.real[l.ID] = true
		}
	}
}

// describeRealLinks writes which links are left as they are.
func (e Experiment) describeRealLinks(w io.Writer) {
	if e.Links != realLinks {
		return
	}
	if plan, err := e.Placement(); err != nil || plan == nil || plan.Guessed {
		fmt.Fprintf(w, "  links between machines are left as they are: which those are is known when nodes are placed\n")
		return
	}
	fmt.Fprintf(w, "  %d links between machines are left as they are, whatever the topology says of them\n", len(e.origin.real))
}
