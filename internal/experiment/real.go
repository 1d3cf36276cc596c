package experiment

import (
	"fmt"
	"io"

	"skerry/internal/lab/placement"
)

// realLinks is what Links is where links between machines are left as they are.
const realLinks = "real"

// real checks what is asked of links that are left as they are, and notes which those are. Plan is nil
// where it is not known what stands where.
func (c *checker) real(plan *placement.Plan) {
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
		if plan == nil || plan.Guessed || plan.At[l.A] != plan.At[l.B] {
			e.origin.real[l.ID] = true
		}
	}
}

// real writes which links are left as they are.
func (e Experiment) real(w io.Writer) {
	if e.Links != realLinks {
		return
	}
	if plan, err := e.Places(); err != nil || plan == nil || plan.Guessed {
		fmt.Fprintf(w, "  links between machines are left as they are: which those are is known when nodes are placed\n")
		return
	}
	fmt.Fprintf(w, "  %d links between machines are left as they are, whatever the topology says of them\n", len(e.origin.real))
}
