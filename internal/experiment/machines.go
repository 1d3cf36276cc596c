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
	return e.Machines.Read(e.path("experiment"))
}

// Places are where the nodes of the lab stand on machines of which no more is known than their file
// tells; nil where the experiment is about this machine, or a cluster has to be asked for machines.
func (e Experiment) Places() (*placement.Plan, error) {
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
	plan, err := placement.New(cloud, placement.Known(f.Machines), e.Place)
	return &plan, err
}

// machines checks that labs can stand on the machines that are given.
func (c *checker) machines() {
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
	if err := lab.Apart(e.origin.cloud, e.Engine); err != nil {
		c.fail("machines", advice.Of(err), "%v", err)
	}
	plan, err := e.Places()
	if err != nil {
		c.fail("place", advice.Of(err), "%v", err)
		return
	}
	if e.Links == realLinks {
		c.real(plan)
	}
	if plan == nil {
		return
	}
	whole := plan.Whole()
	if err := lab.Wholly(e.origin.cloud, whole); err != nil {
		c.fail("machines", advice.Of(err), "%v", err)
	}
	for node := range event.DiskSizes(e.Events, e.Stage(nil)) {
		if slices.Contains(whole, node) {
			c.fail("events", "use disk_slow, or leave out whole: true", "disk_full cannot happen to %s, whose disk is a whole machine's own", node)
		}
	}
}

// places writes where the nodes of an experiment's lab stand, as far as that can be told before the
// machines are reached.
func (e Experiment) places(w io.Writer) {
	e.real(w)
	plan, err := e.Places()
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
