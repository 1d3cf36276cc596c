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

// ReadMachines reads the machines of the labs.
func (e Experiment) ReadMachines() (inventory.File, error) {
	return e.Machines.Load(e.resolvePath("experiment"))
}

// Placement places the nodes of the lab on the machines, as far as the machines file describes them. It is nil for this
// machine, and if a Kubernetes cluster provides the machines.
func (e Experiment) Placement() (*placement.Plan, error) {
	if !e.Machines.IsSet() {
		return nil, nil
	}
	f, err := e.ReadMachines()
	if err != nil || slices.ContainsFunc(f.Machines, func(m inventory.Entry) bool { return m.Kubernetes != nil }) {
		return nil, err
	}
	cloud, err := e.Cloud()
	if err != nil {
		return nil, err
	}
	plan, err := placement.PlaceNodes(cloud, placement.FromInventory(f.Machines), e.Place)
	return &plan, err
}

// checkMachines checks that labs can run on the given machines.
func (c *checker) checkMachines() {
	e := c.e
	if !e.Machines.IsSet() {
		if e.Links == realLinks {
			c.fail("links", "give machines: FILE, or --machines FILE (docs/machines.md)", "real links need several machines, the lab runs on one")
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
		c.fail("machines", "give a machines file (see machines.md)", "%v", err)
		return
	}
	for _, m := range file.Machines {
		if addr, err := netip.ParseAddr(m.Address()); err == nil && e.Between == "plain" && !machine.IsPrivate(addr) {
			c.fail("between", "remove it to encrypt packets", "packets to %s cannot be plain: address %s is not private", m.Name, addr)
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
			c.fail("events", "use disk_slow, or remove whole: true", "disk_full is not possible on %s, which is a whole machine", node)
		}
	}
}

// describePlacement writes the placement of the lab's nodes, as far as it is known without the machines.
func (e Experiment) describePlacement(w io.Writer) {
	e.describeRealLinks(w)
	plan, err := e.Placement()
	if plan == nil || err != nil { // checked earlier
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
		fmt.Fprintf(w, "  cores or memory of some machines are read when the run begins: spread nodes may move then\n")
	}
}

// realLinks is the value of Links for real links.
const realLinks = "real"

// checkRealLinks checks an experiment with real links, and records which links are real. plan is nil if the placement
// is unknown.
func (c *checker) checkRealLinks(plan *placement.Plan) {
	e := c.e
	if plan != nil && !plan.Guessed && len(plan.Used) == 1 {
		c.fail("links", "assign machines to other sites (site in the machines file, or place), or remove links",
			"real links need several machines, all nodes are on %s", plan.Used[0].Machine)
	}
	if e.Scale != 1 {
		c.fail("scale", "remove scale, or links: real", "scale does not apply to real links")
	}
	if e.Drift != nil {
		c.fail("drift", "remove drift, or links: real", "drift does not apply to real links")
	}
	e.origin.real = map[string]bool{}
	for _, l := range e.origin.cloud.Links {
		if plan == nil || plan.Guessed || plan.MachineOf[l.A] != plan.MachineOf[l.B] {
			e.origin.real[l.ID] = true
		}
	}
}

// describeRealLinks writes which links are real.
func (e Experiment) describeRealLinks(w io.Writer) {
	if e.Links != realLinks {
		return
	}
	if plan, err := e.Placement(); err != nil || plan == nil || plan.Guessed {
		fmt.Fprintf(w, "  links between machines are real: which links is known after placement\n")
		return
	}
	fmt.Fprintf(w, "  %d links between machines are real: the topology's settings do not apply to them\n", len(e.origin.real))
}
