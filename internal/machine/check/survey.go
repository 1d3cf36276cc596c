// Package check looks at the machines of a machines file: what each can do, how its clock goes, and
// what lies between each two.
package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/reach"
	"skerry/internal/machine/rpc"
	"skerry/internal/machine/transport"
)

// Report is what was found.
type Report struct {
	Machines []Machine `json:"machines"`
	Pairs    []Pair    `json:"pairs,omitempty"`
}

// Machine is what was found of one.
type Machine struct {
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
	// Addr is the address that others reach it by.
	Addr string `json:"addr,omitempty"`
	// Problem says why it is of no use, Mend what to do about that.
	Problem string `json:"problem,omitempty"`
	Mend    string `json:"mend,omitempty"`

	Agent  rpc.Hello     `json:"agent,omitzero"`
	Clock  machine.Clock `json:"clock,omitzero"`
	Doctor doctor.Report `json:"doctor,omitzero"`
}

// Pair is what was found between two machines, by probes of the first.
type Pair struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Problem string `json:"problem,omitempty"`
	reach.Result
}

// Usable tells whether labs run on every machine.
func (r Report) Usable() bool {
	for _, m := range r.Machines {
		if m.Problem != "" {
			return false
		}
	}
	return true
}

// What is measured of clocks and ways.
const (
	clockProbes = 20
	probes      = 50
	every       = 20 * time.Millisecond
	streaming   = time.Second
)

// Check looks at machines: each one at the same time as the others, and then pair by pair, so that
// none disturbs another. Machines that cannot be reached are told in the report; the error is of ctx alone.
func Check(ctx context.Context, machines []inventory.Machine, o transport.Options) (Report, error) {
	r := Report{Machines: make([]Machine, len(machines))}
	reached := make([]*transport.Connection, len(machines))
	var each sync.WaitGroup
	for i, m := range machines {
		each.Go(func() { reached[i] = look(ctx, m, o, &r.Machines[i]) })
	}
	each.Wait()
	for i, from := range reached {
		for k, to := range reached[i+1:] {
			if from != nil && to != nil && ctx.Err() == nil {
				r.Pairs = append(r.Pairs, between(ctx, from, to, r.Machines[i+1+k].Addr))
			}
		}
	}
	for i, c := range reached {
		if c == nil {
			continue
		}
		if err := c.Close(); err != nil && r.Machines[i].Problem == "" {
			r.Machines[i].fail(err)
		}
	}
	return r, ctx.Err()
}

func (m *Machine) fail(err error) { m.Problem, m.Mend = err.Error(), advice.Of(err) }

// look looks at one machine, and leaves the connection where there is one.
func look(ctx context.Context, m inventory.Machine, o transport.Options, to *Machine) *transport.Connection {
	*to = Machine{Name: m.Name, Site: m.Site, Addr: m.Address()}
	o.Look = true
	c, err := transport.Open(ctx, m, o)
	if err != nil {
		to.fail(err)
		return nil
	}
	if to.Agent = c.Hello; to.Addr == "" {
		to.Addr = c.Hello.Addr
	}
	var errs [2]error
	to.Clock, errs[0] = c.Clock(ctx, clockProbes)
	to.Doctor, errs[1] = c.Examine(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		to.fail(err)
	} else if !to.Doctor.Runnable {
		to.fail(errors.New(m.Name + ": " + to.Doctor.Why))
	}
	return c
}

// between measures from one machine to another.
func between(ctx context.Context, from, to *transport.Connection, addr string) Pair {
	p := Pair{From: from.Name(), To: to.Name()}
	var token [16]byte
	_, _ = rand.Read(token[:]) // it never fails
	port, stop, err := to.Reachable(ctx, token)
	if err == nil {
		p.Result, err = from.Measure(ctx, reach.Order{
			Addr: net.JoinHostPort(addr, strconv.Itoa(port)), Token: token, Probes: probes, Every: every, Stream: streaming,
		})
		stop()
	}
	if err != nil {
		p.Problem = err.Error()
	}
	return p
}

// Swept is what was cleared on a machine.
type Swept struct {
	Name    string   `json:"name"`
	Cleared []string `json:"cleared"`
	Problem string   `json:"problem,omitempty"`
}

// Sweep clears on all machines what commands that were killed have left. The error names those where that
// failed.
func Sweep(ctx context.Context, machines []inventory.Machine, o transport.Options) ([]Swept, error) {
	o.Look = true
	swept, errs := make([]Swept, len(machines)), make([]error, len(machines))
	var each sync.WaitGroup
	for i, m := range machines {
		each.Go(func() {
			swept[i] = Swept{Name: m.Name, Cleared: []string{}}
			c, err := transport.Open(ctx, m, o)
			if err == nil {
				var cleared []string
				cleared, err = c.Sweep(ctx)
				swept[i].Cleared = append(swept[i].Cleared, cleared...)
				err = errors.Join(err, c.Close())
			}
			if err != nil {
				swept[i].Problem = err.Error()
				errs[i] = fmt.Errorf("clearing what was left: %w", err)
			}
		})
	}
	each.Wait()
	return swept, errors.Join(errs...)
}
