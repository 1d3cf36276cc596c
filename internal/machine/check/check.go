// Package check examines the machines in a machines file: capabilities, clock offsets, and the network
// between each pair.
package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/rpc"
	"skerry/internal/machine/transport"
)

// Report is the result of Check.
type Report struct {
	Machines []MachineReport `json:"machines"`
	Pairs    []PairReport    `json:"pairs,omitempty"`
}

// MachineReport is the result for one machine.
type MachineReport struct {
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
	// Addr is the address that other machines use.
	Addr string `json:"addr,omitempty"`
	// Problem is the reason why the machine is unusable; Mend explains how to fix it.
	Problem string `json:"problem,omitempty"`
	Mend    string `json:"mend,omitempty"`

	Agent  rpc.Hello     `json:"agent,omitzero"`
	Clock  machine.Clock `json:"clock,omitzero"`
	Doctor doctor.Report `json:"doctor,omitzero"`
}

// PairReport is the result of probes from one machine to another.
type PairReport struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Problem string `json:"problem,omitempty"`
	pathprobe.Result
}

// Usable reports whether labs run on every machine.
func (r Report) Usable() bool {
	for _, m := range r.Machines {
		if m.Problem != "" {
			return false
		}
	}
	return true
}

// Number of probes and their interval.
const (
	probes    = 50
	every     = 20 * time.Millisecond
	streaming = time.Second
)

// Check examines all machines concurrently and then each pair in turn, so that measurements do not disturb each other. The
// report includes unreachable machines; the error is that of ctx.
func Check(ctx context.Context, machines []inventory.Entry, o transport.Options) (Report, error) {
	r := Report{Machines: make([]MachineReport, len(machines))}
	reached := make([]*transport.Connection, len(machines))
	var each sync.WaitGroup
	for i, m := range machines {
		each.Go(func() { reached[i] = checkMachine(ctx, m, o, &r.Machines[i]) })
	}
	each.Wait()
	for i, from := range reached {
		for k, to := range reached[i+1:] {
			if from != nil && to != nil && ctx.Err() == nil {
				r.Pairs = append(r.Pairs, checkPair(ctx, from, to, r.Machines[i+1+k].Addr))
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

func (m *MachineReport) fail(err error) { m.Problem, m.Mend = err.Error(), advice.Of(err) }

// checkMachine examines a machine. It returns the open connection, nil without one.
func checkMachine(ctx context.Context, m inventory.Entry, o transport.Options, to *MachineReport) *transport.Connection {
	*to = MachineReport{Name: m.Name, Site: m.Site, Addr: m.Address()}
	o.Inspect = true
	c, err := transport.Open(ctx, m, o)
	if err != nil {
		to.fail(err)
		return nil
	}
	if to.Agent = c.Hello; to.Addr == "" {
		to.Addr = c.Hello.Addr
	}
	var errs [2]error
	to.Clock, errs[0] = c.Clock(ctx)
	to.Doctor, errs[1] = c.Examine(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		to.fail(err)
	} else if !to.Doctor.Runnable {
		to.fail(errors.New(m.Name + ": " + to.Doctor.Why))
	}
	return c
}

func checkPair(ctx context.Context, from, to *transport.Connection, addr string) PairReport {
	p := PairReport{From: from.Name(), To: to.Name()}
	var token [16]byte
	_, _ = rand.Read(token[:]) // it never fails
	port, stop, err := to.ListenForProbes(ctx, token)
	if err == nil {
		p.Result, err = from.MeasurePath(ctx, pathprobe.Spec{
			Addr: net.JoinHostPort(addr, strconv.Itoa(port)), Token: token, Probes: probes, Every: every, Stream: streaming,
		})
		stop()
	}
	if err != nil {
		p.Problem = err.Error()
	}
	return p
}

// SweepResult lists the objects removed on a machine.
type SweepResult struct {
	Name    string   `json:"name"`
	Cleared []string `json:"cleared"`
	Problem string   `json:"problem,omitempty"`
}

// Sweep removes the leftovers of killed commands on all machines. The error names the machines on which it failed.
func Sweep(ctx context.Context, machines []inventory.Entry, o transport.Options) ([]SweepResult, error) {
	o.Inspect = true
	swept, errs := make([]SweepResult, len(machines)), make([]error, len(machines))
	var each sync.WaitGroup
	for i, m := range machines {
		each.Go(func() {
			swept[i] = SweepResult{Name: m.Name, Cleared: []string{}}
			c, err := transport.Open(ctx, m, o)
			if err == nil {
				var cleared []string
				cleared, err = c.Sweep(ctx)
				swept[i].Cleared = append(swept[i].Cleared, cleared...)
				err = errors.Join(err, c.Close())
			}
			if err != nil {
				swept[i].Problem = err.Error()
				errs[i] = fmt.Errorf("sweep: %w", err)
			}
		})
	}
	each.Wait()
	return swept, errors.Join(errs...)
}

// Write prints the report as text: a line per machine with its problems, and a line per pair.
func (r Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MACHINE\tSITE\tADDRESS\tCORES\tMEMORY\tKERNEL\tENGINE\tCLOCK")
	for _, m := range r.Machines {
		if m.Agent.Version == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t-\t-\t-\t-\n", m.Name, dash(m.Site), dash(m.Addr))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.1f GiB\t%s %s\t%s\t%s\n", m.Name, dash(m.Site), dash(m.Addr), m.Agent.Cores, float64(m.Agent.Memory)/(1<<30),
			m.Agent.Kernel, m.Agent.Arch, dash(m.Doctor.Engine), clock(m.Clock.Offset, m.Clock.Uncertainty))
	}
	if len(r.Pairs) > 0 {
		fmt.Fprintln(t, "\nFROM\tTO\tRTT MIN\tMEDIAN\tMAX\tLOST\tBANDWIDTH")
	}
	for _, p := range r.Pairs {
		if p.Sent == p.Lost {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t%d of %d\t-\n", p.From, p.To, p.Lost, p.Sent)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", p.From, p.To, ms(p.Min), ms(p.Median), ms(p.Max), p.Lost, p.Sent, bandwidth(p.Bandwidth))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeProblems(w)
}

// writeProblems prints the problems and their fixes.
func (r Report) writeProblems(w io.Writer) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	for _, m := range r.Machines {
		if m.Problem != "" {
			line("\n%s\n", m.Problem)
			if m.Mend != "" {
				line("  -> %s\n", m.Mend)
			}
		}
		for _, f := range m.Doctor.Findings {
			if f.State != doctor.OK && f.Mend != "" && f.State != doctor.Missing {
				line("%s: %s: %s\n  -> %s\n", m.Name, f.Name, f.Detail, f.Mend)
			}
		}
	}
	for _, p := range r.Pairs {
		if p.Problem != "" {
			line("%s to %s: %s\n", p.From, p.To, p.Problem)
		}
	}
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func clock(offset, uncertainty time.Duration) string {
	return fmt.Sprintf("%+.2f ± %.2f ms", float64(offset)/1e6, float64(uncertainty)/1e6)
}

func bandwidth(bps int64) string {
	if bps == 0 {
		return "-"
	}
	return unit.Bandwidth(bps - bps%1e6).String()
}
